# shellcheck shell=bash
# For the tests of one file that two sides use: `one` and `other` run both.py
# on either side.
rounds=1 rows=100 lines=400 steps=200
[ -z "${PALE_SOAK:-}" ] || rounds=20 rows=200 lines=5000 steps=5000
command -v python3 >/dev/null || skip "no python3"
cp "$(dirname "$0")/both.py" "$D/both.py"
cp "$D/both.py" "$W/both.py"

ww_how() { # OPTION ARGUMENTS…: both.py in a world
	local how=$1
	shift
	# shellcheck disable=SC2034 # for ww
	OPTS=()
	# shellcheck disable=SC2034
	[ -z "$how" ] || OPTS=("$how")
	ww python3 "$W/both.py" "$@"
}

both() { # ARGUMENTS with @ for the side's name: on both sides at once
	local first second
	one "${@//@/one}" >"$D/one.out" 2>&1 &
	first=$!
	other "${@//@/other}" >"$D/other.out" 2>&1 &
	second=$!
	wait $first && wait $second && return 0
	tail -n 3 "$D/one.out" "$D/other.out"
	fail "$*"
}

let_go() { # what runs as the coprocess HOLD
	local to=${HOLD[1]} pid=$HOLD_PID
	exec {to}>&-
	wait "$pid"
}

make_db() { # JOURNAL MODE
	rm -f "$W"/d.db*
	python3 -c "
import sqlite3
db = sqlite3.connect('$W/d.db')
db.execute('pragma journal_mode=$1')
db.execute('create table t(who, i, n unique)')"
}
db_state() {
	python3 -c "
import sqlite3
db = sqlite3.connect('$W/d.db')
print(db.execute('pragma integrity_check').fetchone()[0],
      *db.execute('select count(*), ifnull(max(n), -1) from t').fetchone())"
}

# Every row that a side says it wrote is there, and no other.
sides_databases() { # WHAT
	local i mode n
	for mode in wal delete truncate persist; do
		for ((i = 0; i < rounds; i++)); do
			make_db $mode
			both sqlite "$W/d.db" @ $rows 60
			n=$(awk '{ n += $2 } END { print n }' "$D"/{one,other}.out)
			same "$(db_state)" "ok $n $((n - 1))" "$1 $mode"
			# Both wait for as long as it takes here.
			same "$n" $((2 * rows)) "$1 $mode $(cat "$D"/{one,other}.out)"
		done
	done
}

check_late() { # OPTION: what the second user of a wal-index was told
	if is_root && [ -z "$1" ]; then
		same "$(cat "$D/late")" "ok 5" "$1 the second"
		same "$(db_state)" "ok 5 4" "$1 rows"
	else
		# "database is locked" or, after ten seconds, "locking protocol".
		grep -qE '^refused 0: .*lock' "$D/late" ||
			fail "$1 the second: $(cat "$D/late")"
		same "$(db_state)" "ok 0 -1" "$1 rows"
	fi
}

sides_logs() { # WHAT
	rm -f "$W/log"
	both append "$W/log" @ $lines
	python3 - "$W/log" $lines <<'END' || fail "$1 log"
import sys
seen = {"one": 0, "other": 0}
for line in open(sys.argv[1]):
    who, i, rest = line[:-1].split(" ")
    assert int(i) == seen[who], ("order", line[:20])
    assert rest == "x" * (int(i) * 37 % 5000), ("torn", line[:20])
    seen[who] += 1
assert set(seen.values()) == {int(sys.argv[2])}, seen
END
	same "$(ww cksum <"$W/log")" "$(cksum <"$W/log")" "$1 log, read inside"
}

sides_counters() { # WHAT
	local kind way
	for kind in posix ofd flock; do
		for way in rw map; do
			head -c 4096 /dev/zero >"$W/counter"
			both count $kind $way "$W/counter" $steps
			same "$(od -An -td8 -N8 "$W/counter" | tr -d ' ')" \
				$((2 * steps)) "$1 counter: $kind $way"
		done
	done
}
