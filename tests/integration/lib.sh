# shellcheck shell=bash
# For the tests of tests/integration and tests/escape:
#
#	. "$(dirname "$0")/lib.sh"               (escape: ../integration/lib.sh)
#
# A test starts in an empty directory; $W is its workspace (made, empty), $OUT a
# directory outside it, $D the parent of both.  It ends with the first failed
# assertion; what it prints is shown only then.  It also runs by hand.
set -u

if [ -z "${PALE_TEST_DIR:-}" ]; then
	here=$(cd "$(dirname "$0")" && pwd)
	PALE_SRC=$(cd "$here/../.." && pwd)
	PALE=${PALE:-$PALE_SRC/build/pale}
	PALE_TOOLS=${PALE_TOOLS:-$PALE_SRC/build/tests/tools}
	base=${PALE_TEST_BASE:-$([ "$(id -u)" = 0 ] && echo /srv || echo "$HOME")}
	PALE_TEST_DIR=$(mktemp -d "$base/pt.XXXXXX") || exit 2
	PALE_TEST_ID=hand.$$
	trap 'rm -rf --one-file-system "$PALE_TEST_DIR"' EXIT
	mkdir -p "$PALE_TEST_DIR"/{home,run,state,config,work}
	chmod 755 "$PALE_TEST_DIR"
	export HOME=$PALE_TEST_DIR/home XDG_RUNTIME_DIR=$PALE_TEST_DIR/run
	export XDG_STATE_HOME=$PALE_TEST_DIR/state XDG_CONFIG_HOME=$PALE_TEST_DIR/config
	export PALE PALE_TOOLS PALE_SRC PALE_TEST_DIR PALE_TEST_ID
	cd "$PALE_TEST_DIR/work" || exit 2
fi

D=$PALE_TEST_DIR/work
W=$D/w
OUT=$D/out
mkdir -p "$W" "$OUT"
# git must not ask who we are, nor read the machine's configuration.
export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@example.org
export GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@example.org

fail() {
	echo "FAIL at line ${BASH_LINENO[-2]}: $*"
	exit 1
}

skip() {
	echo "SKIP: $*"
	exit 77
}

is_root() { [ "$(id -u)" = 0 ]; }

# sleeps TIME...: whether a world's `sleep TIME` lives, or the shell around it.
# pale does not count: its own command line says the same while it leaves.
sleeps() {
	pgrep -f "^(sh -c .*|setsid )?sleep ($(IFS='|' && echo "$*"))([^0-9]|\$)" >/dev/null
}

# expect STATUS CMD...: runs it, asserts its exit status; output in $D/stdout
# and $D/stderr.
expect() {
	local want=$1 got
	shift
	"$@" >"$D/stdout" 2>"$D/stderr"
	got=$?
	[ "$got" = "$want" ] && return 0
	echo "--- stdout" && head -c 2000 "$D/stdout"
	echo "--- stderr" && head -c 2000 "$D/stderr"
	fail "'$*' exited $got, not $want"
}

# says TEXT [FILE]: the last `expect` printed a line with TEXT.
says() {
	local file=${2:-stdout}
	grep -qF -e "$1" "$D/$file" && return 0
	head -c 2000 "$D/$file"
	fail "no '$1' in $file"
}

same() { # GOT WANT WHAT
	[ "$1" = "$2" ] || fail "$3: got '$1', want '$2'"
}

# wait_until SECONDS CMD...: until it succeeds.
wait_until() {
	local deadline=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $deadline ] || fail "not within the time: $*"
		sleep 0.02
	done
}

# The workspace's world: `ro CMD...`, `ww CMD...`; OPTS holds further options.
OPTS=()
ro() { "$PALE" run -q -m read-only -w "$W" "${OPTS[@]}" -- "$@"; }
ww() { "$PALE" run -q -m workspace-write -w "$W" "${OPTS[@]}" -- "$@"; }

# denials_count [JQ-LIKE WORD...]: the sum of the counts of all records of this
# test whose JSON line has every WORD.
denials_count() {
	local line words=("$@") w n total=0
	while IFS= read -r line; do
		for w in "${words[@]}"; do
			case $line in *"$w"*) ;; *) continue 2 ;; esac
		done
		n=$(printf '%s' "$line" | sed -n 's/.*"count": *\([0-9]*\).*/\1/p')
		total=$((total + ${n:-1}))
	done < <("$PALE" denials --json 2>/dev/null)
	echo $total
}

# recorded OP PATH: there is a record of this refusal.
recorded() {
	[ "$(denials_count "\"op\":\"$1\"" "\"path\":\"$2\"")" -gt 0 ] && return 0
	"$PALE" denials --json | tail -n 5
	fail "no record of $1 $2"
}

# fingerprint DIR: names, types, modes, sizes, times and contents below it.
fingerprint() {
	(cd "$1" && {
		find . -printf '%P %y %m %U %G %s %T@ %l\n' | sort
		find . -type f -exec sha256sum {} + | sort
	}) | sha256sum
}
