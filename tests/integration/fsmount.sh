# shellcheck shell=bash
# For the tests of the filesystem alone, without a world around it.
#
#	. "$(dirname "$0")/fsmount.sh"           (after lib.sh)
#	fsmount [-p PROTECT]… [-H HIDE]… MODE    serves $W at $W in a namespace
#	inside CMD…                              runs CMD there
#	fsumount                                 ends it; $D/log has its output
#
# Denials of it are read with `denied`: op|path|path2|rule|errno|count a line,
# paths relative to $W.
FSMOUNT=$PALE_TOOLS/fsmount
FS_PID='' NS_PID=''

fs_trap=$(trap -p EXIT | sed "s/^trap -- '//; s/' EXIT\$//")
# shellcheck disable=SC2064
trap "[ -z \"\$FS_PID\" ] || { kill \$FS_PID; wait \$FS_PID; }; $fs_trap" EXIT

fsmount() {
	local mode=${*: -1} one=''
	set -- "${@:1:$#-1}"
	is_root || one=-1
	[ -x "$FSMOUNT" ] || fail "no $FSMOUNT: make tests"
	[ -r /dev/fuse ] || skip "no /dev/fuse"
	rm -rf "$D/den" && mkdir "$D/den"
	: >"$D/log"
	"$FSMOUNT" -n $one ${FS_PASS:+-P} -d "$D/den" -m "$mode" "$@" "$W" "$W" >"$D/log" 2>&1 &
	FS_PID=$!
	wait_until 10 grep -q '^ready' "$D/log"
	NS_PID=$(sed -n 's/^ready //p' "$D/log")
}

inside() {
	local user=''
	is_root || user='-U --preserve-credentials'
	# shellcheck disable=SC2086
	nsenter $user -m -t "$NS_PID" -- "$@"
}

fsumount() {
	local status
	kill "$FS_PID"
	wait "$FS_PID"
	status=$?
	FS_PID=''
	[ $status = 0 ] || { cat "$D/log"; fail "fsmount exited $status"; }
}

denied() {
	[ -e "$D/den/pale.db" ] || return 0
	python3 - "$D/den/pale.db" "$W" <<'END'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
w = sys.argv[2].encode()
def rel(p):
    if p is None: return ""
    if isinstance(p, str): p = p.encode()
    return (p[len(w) + 1:] if p.startswith(w + b"/") else p).decode()
def text(x):
    return x.decode() if isinstance(x, bytes) else x
for r in db.execute("select op, path, path2, rule, errno, count from denials"
                    " order by id"):
    print("|".join([r[0], rel(r[1]), rel(r[2]), text(r[3]) or "", str(r[4]),
                    str(r[5])]))
END
}
