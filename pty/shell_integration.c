/* SPDX-License-Identifier: MIT */

/*
 * What the lines must live with: prompts that are made anew each time, hooks of
 * the user before and after ours, `set -u` and `set -e`, an exported prompt.
 * The user's hooks see the status that they would have seen without us.
 *
 * %s is the nonce.
 */

#include "pty/shell_integration.h"

#include <stdbool.h>
#include <string.h>

/*
 * PROMPT_COMMAND has been an array since 5.1, and each of its elements finds
 * the status of the command in $?.  The prompt names the variable and not its
 * value: it may be exported.
 */
static const char bash_lines[] =
	"exec 9<&-\n"
	"__pale_nonce=%s\n"
	"if [ -r ~/.bashrc ]; then . ~/.bashrc || :; fi\n"
	"__pale_mark() {\n"
	"	printf '\\033]133;%%s;pale=%%s\\a' \"$1\" \"$__pale_nonce\" "
	">&2 || :\n"
	"}\n"
	"__pale_first() {\n"
	"	__pale_mark \"D;$?\"\n"
	"	__pale_told=1\n"
	"}\n"
	"__pale_last() {\n"
	"	local status=$?\n"
	"	[ \"${__pale_told-}\" ] || __pale_mark \"D;$status\"\n"
	"	__pale_told=\n"
	"	[[ ${PS0-} == *'133;C;'* ]] ||\n"
	"		PS0='\\e]133;C;pale=${__pale_nonce-}\\a'${PS0-}\n"
	"	[[ ${PS1-} == *'133;B;'* ]] ||\n"
	"		PS1=${PS1-}'\\[\\e]133;B;pale=${__pale_nonce-}\\a\\]'\n"
	"	[[ ${PROMPT_COMMAND[0]-} == __pale_first ]] || __pale_hook\n"
	"	__pale_mark A\n"
	"}\n"
	"__pale_hook() {\n"
	"	local command list=()\n"
	"	for command in ${PROMPT_COMMAND[@]+\"${PROMPT_COMMAND[@]}\"}; "
	"do\n"
	"		[[ $command == __pale_* ]] || list+=(\"$command\")\n"
	"	done\n"
	"	PROMPT_COMMAND=(__pale_first ${list[@]+\"${list[@]}\"} "
	"__pale_last)\n"
	"}\n"
	"if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then\n"
	"	__pale_told=1\n"
	"	__pale_hook\n"
	"	unset 'PROMPT_COMMAND[0]'\n"
	"	PROMPT_COMMAND=(\"${PROMPT_COMMAND[@]}\")\n"
	"fi\n";

/*
 * Read by a .zshenv in a directory that was made for it.  The prompt holds the
 * value, as nothing is replaced in it by default: it is not exported, then.
 *
 * zsh shows that an output had no last newline (PROMPT_SP) before it calls
 * anybody, which would make that a part of the output: here it comes after.
 */
static const char zsh_lines[] =
	"exec 9<&-\n"
	"typeset -g +x __pale_nonce=%s\n"
	"if [[ -n ${PALE_ZDOTDIR+x} ]]; then\n"
	"	export ZDOTDIR=$PALE_ZDOTDIR\n"
	"	unset PALE_ZDOTDIR\n"
	"else\n"
	"	unset ZDOTDIR\n"
	"fi\n"
	"if [[ -r ${ZDOTDIR-$HOME}/.zshenv ]]; then\n"
	"	. \"${ZDOTDIR-$HOME}/.zshenv\" || :\n"
	"fi\n"
	"__pale_mark() {\n"
	"	builtin printf '\\033]133;%%s;pale=%%s\\a' \"$1\" "
	"\"$__pale_nonce\"\n"
	"}\n"
	"__pale_hook() {\n"
	"	emulate -L zsh\n"
	"	typeset -ga precmd_functions preexec_functions\n"
	"	precmd_functions=(__pale_first\n"
	"		${precmd_functions:#__pale_*} __pale_last)\n"
	"	preexec_functions=(${preexec_functions:#__pale_*} "
	"__pale_preexec)\n"
	"}\n"
	"__pale_preexec() {\n"
	"	__pale_hook\n"
	"	typeset -g __pale_ran=1\n"
	"	__pale_mark C\n"
	"}\n"
	"__pale_first() {\n"
	"	local __pale_status=$?\n"
	"	[[ -z ${__pale_ran-} ]] || __pale_mark \"D;$__pale_status\"\n"
	"	typeset -g __pale_ran=\n"
	"	[[ -z ${__pale_sp-} || ! -o prompt_cr ]] ||\n"
	"		print -Pn -- \"${PROMPT_EOL_MARK-%%B%%S%%#%%s%%b}"
	"${(l:COLUMNS-1:: :):-}\"$'\\r \\r'\n"
	"}\n"
	"__pale_last() {\n"
	"	if [[ -o prompt_sp ]]; then\n"
	"		unsetopt prompt_sp\n"
	"		typeset -g __pale_sp=1\n"
	"	fi\n"
	"	if [[ ${PS1-} != *'133;B;'* ]]; then\n"
	"		typeset -g +x PS1=\"${PS1-}%%{\"$'\\e]133;B;pale='"
	"\"$__pale_nonce\"$'\\a'\"%%}\"\n"
	"	fi\n"
	"	__pale_hook\n"
	"	__pale_mark A\n"
	"}\n"
	"__pale_hook\n";

/* Read with -C, after the user's files, from a file that goes at once. */
static const char fish_lines[] =
	"set -gu __pale_nonce %s\n"
	"command rm -rf -- $__pale_directory\n"
	"set -e __pale_directory\n"
	"function __pale_mark\n"
	"	printf '\\e]133;%%s;pale=%%s\\a' $argv[1] $__pale_nonce\n"
	"end\n"
	"function __pale_preexec --on-event fish_preexec\n"
	"	__pale_mark C\n"
	"end\n"
	"function __pale_postexec --on-event fish_postexec\n"
	"	__pale_mark \"D;$status\"\n"
	"end\n"
	"function __pale_wrap --on-event fish_prompt\n"
	"	if not functions fish_prompt | string match -q '*__pale_mark "
	"B*'\n"
	"		functions -e __pale_prompt\n"
	"		functions -c fish_prompt __pale_prompt\n"
	"		function fish_prompt\n"
	"			__pale_prompt\n"
	"			__pale_mark B\n"
	"		end\n"
	"	end\n"
	"	__pale_mark A\n"
	"end\n";

/* dash knows descriptors of one digit; 2 becomes the terminal again. */
static const char bash_start[] =
	"exec 9<&2 2<&0; shell=$1; shift\n"
	"exec \"$shell\" --rcfile /proc/self/fd/9 \"$@\"";

/* It wants a directory: that of the control tree, else one for a moment. */
static const char zsh_start[] =
	"exec 9<&2 2<&0\n"
	"d=${PALE_TREE-}/" SHELL_ZSH_DIRECTORY "\n"
	"if [ ! -r \"$d/.zshenv\" ]; then\n"
	"	if d=$(mktemp -d 2>/dev/null); then\n"
	"		echo '" SHELL_ZSHENV "' >\"$d/.zshenv\"\n"
	"		echo \"command rm -rf -- '$d'\" >>\"$d/.zshenv\"\n"
	"	fi\n"
	"fi\n"
	"if [ -n \"$d\" ]; then\n"
	"	[ -z \"${ZDOTDIR+x}\" ] || export PALE_ZDOTDIR=\"$ZDOTDIR\"\n"
	"	export ZDOTDIR=\"$d\"\n"
	"else\n"
	"	exec 9<&-\n"
	"fi\n"
	"exec \"$@\"";

/*
 * It closes no descriptor of its own: where no file can be made, what it starts
 * has the end of an empty pipe.
 */
static const char fish_start[] =
	"if d=$(mktemp -d 2>/dev/null) && cat <&2 >\"$d/lines\"; then\n"
	"	set -- \"$@\" -C \"set -g __pale_directory '$d'; source "
	"'$d/lines'\"\n"
	"	exec 2<&0\n"
	"else\n"
	"	exec 9<&2 2<&0\n"
	"	set -- \"$@\" -C 'cat <&9 | source'\n"
	"fi\n"
	"exec \"$@\"";

static const struct {
	const char *name, *lines, *start;
	/* The options with which it reads what we give it. */
	const char *const *options;
} shells[] = {
	[SHELL_BASH] = { "bash", bash_lines, bash_start,
			 (const char *const[]){ "-i", NULL } },
	[SHELL_ZSH] = { "zsh", zsh_lines, zsh_start,
			(const char *const[]){ "-i", "-l", "-il", "-li",
					       "--login", NULL } },
	[SHELL_FISH] = { "fish", fish_lines, fish_start,
			 (const char *const[]){ "-i", "-l", "-il", "-li",
						"--login", "--interactive",
						NULL } },
};

static bool
is_among(const char *const *list, const char *text)
{
	for (; *list; list++)
		if (strcmp(*list, text) == 0)
			return true;
	return false;
}

static bool
is_unwanted(const struct strv *env)
{
	for (size_t i = 0; i < env->count; i++)
		if (strcmp(env->items[i], SHELL_INTEGRATION_VARIABLE "=0") == 0)
			return true;
	return false;
}

enum shell_kind
shell_kind_of(const struct strv *argv, const struct strv *env)
{
	const char *name, *slash;

	if (argv->count == 0 || is_unwanted(env))
		return SHELL_OTHER;
	slash = strrchr(argv->items[0], '/');
	name = slash ? slash + 1 : argv->items[0];
	for (size_t kind = SHELL_BASH; kind <= SHELL_FISH; kind++) {
		if (strcmp(shells[kind].name, name) != 0)
			continue;
		for (size_t i = 1; i < argv->count; i++)
			if (!is_among(shells[kind].options, argv->items[i]))
				return SHELL_OTHER;
		return (enum shell_kind)kind;
	}
	return SHELL_OTHER;
}

void
shell_lines(enum shell_kind kind, const char *nonce, struct buf *out)
{
	const char *at = shells[kind].lines, *mark;

	/* The lines are no format to the compiler, as it cannot see which. */
	for (; (mark = strchr(at, '%')); at = mark + 2) {
		buf_put(out, at, (size_t)(mark - at));
		if (mark[1] == 's')
			buf_puts(out, nonce);
		else
			buf_put(out, "%", 1);
	}
	buf_puts(out, at);
}

int
shell_wrap(enum shell_kind kind, const struct strv *argv, struct strv *ret_argv)
{
	static const char *const sh[] = { "/bin/sh", "-c" };
	int r = 0;

	for (size_t i = 0; i < sizeof(sh) / sizeof(sh[0]) && r == 0; i++)
		r = strv_add(ret_argv, sh[i]);
	if (r == 0)
		r = strv_add(ret_argv, shells[kind].start);
	if (r == 0)
		r = strv_add(ret_argv, "sh");
	return r < 0 ? r : strv_extend(ret_argv, argv);
}
