/* SPDX-License-Identifier: MIT */

/*
 * The built-in presets, in the words of the configuration file.  One that sets
 * a mode is complete in what presets are about, so that choosing another
 * leaves nothing of the first behind; `secrets` sets none and goes with any
 * (`--preset work,secrets`).
 */

#include <string.h>

#include "policy/policy_priv.h"

const char preset_builtin_text[] = "[preset plan]\n"
				   "mode = read-only\n"
				   "home = ro\n"
				   "net = host\n"
				   "[preset work]\n"
				   "mode = workspace-write\n"
				   "home = private\n"
				   "net = host\n"
				   "[preset ci]\n"
				   "mode = workspace-write\n"
				   "home = ro\n"
				   "net = none\n"
				   "[preset full]\n"
				   "mode = danger-full-access\n"
				   "home = ro\n"
				   "net = host\n"
				   "[preset secrets]\n"
				   "hide = .env\n"
				   "hide = .env.*\n"
				   "hide = !.env.example\n"
				   "hide = !.env.sample\n"
				   "hide = !.env.template\n"
				   "hide = *.pem\n"
				   "hide = *.key\n"
				   "hide = *.p12\n"
				   "hide = *.pfx\n"
				   "hide = *.kdbx\n"
				   "hide = id_rsa\n"
				   "hide = id_dsa\n"
				   "hide = id_ecdsa\n"
				   "hide = id_ed25519\n"
				   "hide = .netrc\n"
				   "hide = .pypirc\n"
				   "hide-path = ~/.ssh\n"
				   "hide-path = ~/.aws\n"
				   "hide-path = ~/.gnupg\n"
				   "hide-path = ~/.netrc\n"
				   "hide-path = ~/.config/gcloud\n"
				   "hide-path = ~/.docker/config.json\n"
				   "hide-path = ~/.kube\n"
				   "hide-path = ~/.npmrc\n"
				   "hide-path = ~/.pypirc\n"
				   "env-hide = *KEY*\n"
				   "env-hide = *TOKEN*\n"
				   "env-hide = *SECRET*\n"
				   "env-hide = *PASSWORD*\n"
				   "env-hide = *PASSPHRASE*\n";

static const char *const names[] = { "plan", "work", "ci", "full", "secrets" };

bool
preset_is_builtin(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

struct policy_request
policy_request_none(void)
{
	return (struct policy_request){ .tmp = -1, .nest = -1 };
}
