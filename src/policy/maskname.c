/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables. A name too many is a build that does not find its file, so names
 * that are not always secrets count only with content that is; configuration
 * that tools need to work (.npmrc) is not in it.
 */
#include "policy/maskname.h"

#include <string.h>
#include <strings.h>

#include "base/base.h"

static const struct {
	const char *parent; /* NULL: anywhere */
	const char *name;   /* a star at the beginning or end stands for anything */
	enum mask_name is;
} names[] = {
	{NULL, "id_rsa", MASK_NAME_SECRET},
	{NULL, "id_ed25519", MASK_NAME_SECRET},
	{NULL, "id_ecdsa", MASK_NAME_SECRET},
	{NULL, "id_dsa", MASK_NAME_SECRET},
	{NULL, "id_ed25519_sk", MASK_NAME_SECRET},
	{NULL, "id_ecdsa_sk", MASK_NAME_SECRET},
	{NULL, "*.p12", MASK_NAME_SECRET},
	{NULL, "*.pfx", MASK_NAME_SECRET},
	{NULL, "*.jks", MASK_NAME_SECRET},
	{NULL, "*.keystore", MASK_NAME_SECRET},
	{NULL, "*.kdbx", MASK_NAME_SECRET},
	{NULL, "*.ppk", MASK_NAME_SECRET},
	{NULL, "*.pem", MASK_NAME_SNIFF},
	{NULL, "*.key", MASK_NAME_SNIFF},
	{NULL, ".netrc", MASK_NAME_SECRET},
	{NULL, "_netrc", MASK_NAME_SECRET},
	{NULL, ".pgpass", MASK_NAME_SECRET},
	{NULL, ".git-credentials", MASK_NAME_SECRET},
	{NULL, ".pypirc", MASK_NAME_SECRET},
	{NULL, ".dockercfg", MASK_NAME_SECRET},
	{NULL, ".s3cfg", MASK_NAME_SECRET},
	{".aws", "credentials", MASK_NAME_SECRET},
	{".docker", "config.json", MASK_NAME_SECRET},
	{".kube", "config", MASK_NAME_SECRET},
	{NULL, "application_default_credentials.json", MASK_NAME_SECRET},
	{NULL, "credentials*.json", MASK_NAME_SNIFF},
	{NULL, "service-account*.json", MASK_NAME_SNIFF},
	{NULL, "service_account*.json", MASK_NAME_SNIFF},
};

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name);
	size_t len = strlen(end);

	return n >= len && strcasecmp(name + n - len, end) == 0;
}

/* One star at most. */
static bool is_like(const char *like, const char *name)
{
	const char *star = strchr(like, '*');
	size_t before = star ? (size_t)(star - like) : 0;

	if (!star)
		return strcasecmp(like, name) == 0;
	return strlen(name) >= before + strlen(star + 1) && strncasecmp(like, name, before) == 0 &&
	       ends_in(name, star + 1);
}

/* `.env`, `.env.local`, … but not what a project shows as an example. */
static bool is_dotenv(const char *name)
{
	static const char *const shown[] = {".example", ".sample", ".template"};

	if (strncasecmp(name, ".env", 4) != 0 || (name[4] && (name[4] != '.' || !name[5])))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		if (ends_in(name + 4, shown[i]))
			return false;
	return true;
}

enum mask_name mask_name(const char *parent, const char *name)
{
	/* Most names are none of them: told by their first letter, or their ending's. */
	const char *dot = strrchr(name, '.');
	if (!strchr("._iIcCsSaA", name[0]) && (!dot || !strchr("pPkKjJ", dot[1])))
		return MASK_NAME_NONE;
	if (is_dotenv(name))
		return MASK_NAME_DOTENV;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (is_like(names[i].name, name) &&
		    (!names[i].parent || strcasecmp(names[i].parent, parent) == 0))
			return names[i].is;
	return MASK_NAME_NONE;
}

bool mask_sniff(const void *bytes, size_t n)
{
	static const char *const marks[] = {"PRIVATE KEY-----", "\"private_key\"",
					    "\"client_secret\"", "\"refresh_token\"",
					    "\"secret_access_key\""};

	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (memmem(bytes, n, marks[i], strlen(marks[i])))
			return true;
	return false;
}
