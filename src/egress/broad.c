/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of places that belong to everybody: the names under which well-known hosters
 * put what their customers publish, collected by hand. The private part of the Public
 * Suffix List (publicsuffix.org) names most of them too. No list is complete: what is
 * not here is not said to be narrow.
 */
#include "egress/broad.h"

#include <string.h>

#include "base/base.h"

enum shared_kind {
	SHARED_BELOW, /* customers have names right below */
	SHARED_DEEP,  /* customers have names at any depth below */
	SHARED_PATH,  /* customers have paths on this very host */
};

struct shared {
	const char *name;
	enum shared_kind kind;
};

static const struct shared shareds[] = {
	{"github.io", SHARED_BELOW},
	{"githubusercontent.com", SHARED_BELOW},
	{"github.dev", SHARED_DEEP},
	{"gitlab.io", SHARED_DEEP},
	{"bitbucket.io", SHARED_BELOW},
	{"codeberg.page", SHARED_BELOW},
	{"amazonaws.com", SHARED_DEEP},
	{"amazonaws.com.cn", SHARED_DEEP},
	{"cloudfront.net", SHARED_BELOW},
	{"elasticbeanstalk.com", SHARED_DEEP},
	{"awsapprunner.com", SHARED_DEEP},
	{"amplifyapp.com", SHARED_DEEP},
	{"on.aws", SHARED_DEEP},
	{"windows.net", SHARED_DEEP},
	{"azurewebsites.net", SHARED_DEEP},
	{"azurestaticapps.net", SHARED_DEEP},
	{"azureedge.net", SHARED_BELOW},
	{"azurefd.net", SHARED_DEEP},
	{"azurecontainerapps.io", SHARED_DEEP},
	{"cloudapp.net", SHARED_DEEP},
	{"cloudapp.azure.com", SHARED_DEEP},
	{"googleapis.com", SHARED_BELOW},
	{"googleusercontent.com", SHARED_DEEP},
	{"appspot.com", SHARED_DEEP},
	{"run.app", SHARED_DEEP},
	{"cloudfunctions.net", SHARED_BELOW},
	{"firebaseapp.com", SHARED_BELOW},
	{"firebaseio.com", SHARED_BELOW},
	{"web.app", SHARED_BELOW},
	{"blogspot.com", SHARED_BELOW},
	{"vercel.app", SHARED_BELOW},
	{"now.sh", SHARED_BELOW},
	{"netlify.app", SHARED_BELOW},
	{"herokuapp.com", SHARED_BELOW},
	{"pages.dev", SHARED_DEEP},
	{"workers.dev", SHARED_DEEP},
	{"r2.dev", SHARED_BELOW},
	{"cloudflarestorage.com", SHARED_DEEP},
	{"trycloudflare.com", SHARED_BELOW},
	{"ngrok.io", SHARED_DEEP},
	{"ngrok.app", SHARED_DEEP},
	{"ngrok.dev", SHARED_BELOW},
	{"ngrok-free.app", SHARED_BELOW},
	{"ngrok-free.dev", SHARED_BELOW},
	{"loca.lt", SHARED_BELOW},
	{"serveo.net", SHARED_BELOW},
	{"localhost.run", SHARED_BELOW},
	{"lhr.life", SHARED_BELOW},
	{"devtunnels.ms", SHARED_DEEP},
	{"ts.net", SHARED_DEEP},
	{"fly.dev", SHARED_BELOW},
	{"fly.io", SHARED_BELOW},
	{"onrender.com", SHARED_BELOW},
	{"railway.app", SHARED_DEEP},
	{"deno.dev", SHARED_BELOW},
	{"surge.sh", SHARED_BELOW},
	{"glitch.me", SHARED_BELOW},
	{"repl.co", SHARED_DEEP},
	{"replit.app", SHARED_BELOW},
	{"replit.dev", SHARED_DEEP},
	{"stackblitz.io", SHARED_BELOW},
	{"webcontainer.io", SHARED_DEEP},
	{"csb.app", SHARED_BELOW},
	{"gitpod.io", SHARED_DEEP},
	{"hf.space", SHARED_BELOW},
	{"supabase.co", SHARED_BELOW},
	{"digitaloceanspaces.com", SHARED_DEEP},
	{"ondigitalocean.app", SHARED_BELOW},
	{"linodeobjects.com", SHARED_DEEP},
	{"backblazeb2.com", SHARED_DEEP},
	{"wasabisys.com", SHARED_DEEP},
	{"aliyuncs.com", SHARED_DEEP},
	{"myqcloud.com", SHARED_DEEP},
	{"oraclecloud.com", SHARED_DEEP},
	{"oast.fun", SHARED_DEEP},
	{"oast.site", SHARED_DEEP},
	{"oastify.com", SHARED_DEEP},
	{"interact.sh", SHARED_DEEP},
	{"pipedream.net", SHARED_BELOW},
	{"wordpress.com", SHARED_BELOW},
	{"notion.site", SHARED_BELOW},
	{"slack.com", SHARED_BELOW},
	{"zendesk.com", SHARED_BELOW},
	{"atlassian.net", SHARED_BELOW},
	{"sharepoint.com", SHARED_BELOW},
	{"duckdns.org", SHARED_DEEP},
	{"no-ip.org", SHARED_BELOW},
	{"sslip.io", SHARED_DEEP},
	{"nip.io", SHARED_DEEP},
	{"storage.googleapis.com", SHARED_PATH},
	{"s3.amazonaws.com", SHARED_PATH},
	{"firestore.googleapis.com", SHARED_PATH},
	{"gist.githubusercontent.com", SHARED_PATH},
	{"gist.github.com", SHARED_PATH},
	{"docs.google.com", SHARED_PATH},
	{"drive.google.com", SHARED_PATH},
	{"script.google.com", SHARED_PATH},
	{"hooks.slack.com", SHARED_PATH},
	{"discord.com", SHARED_PATH},
	{"api.telegram.org", SHARED_PATH},
	{"pastebin.com", SHARED_PATH},
	{"transfer.sh", SHARED_PATH},
	{"0x0.st", SHARED_PATH},
	{"file.io", SHARED_PATH},
	{"webhook.site", SHARED_PATH},
	{"requestbin.com", SHARED_PATH},
};

/* Where git's write service is offered over HTTPS. */
static const char *const forges[] = {
	"github.com",
	"ssh.github.com",
	"gist.github.com",
	"gitlab.com",
	"altssh.gitlab.com",
	"bitbucket.org",
	"altssh.bitbucket.org",
	"codeberg.org",
	"git.sr.ht",
	"dev.azure.com",
	"ssh.dev.azure.com",
	"gitee.com",
	"huggingface.co",
	"salsa.debian.org",
	"sourceforge.net",
	"git.code.sf.net",
	"gitea.com",
	"framagit.org",
	"source.developers.google.com",
	"heroku.com",
	"git.heroku.com",
	"visualstudio.com",
};

static bool is_below(const char *name, const char *suffix)
{
	size_t n = strlen(name);
	size_t m = strlen(suffix);

	return n > m && name[n - m - 1] == '.' && strcmp(name + n - m, suffix) == 0;
}

/* What is fixed in a pattern: all behind its last label with `*`; NULL: all of it is fixed. */
static const char *base_of(const struct egress_rule *r)
{
	const char *star = strrchr(r->host, '*');
	const char *dot = star ? strchr(star, '.') : NULL;

	if (star)
		return dot ? dot + 1 : "";
	return r->kind == EGRESS_NAME ? NULL : r->host;
}

/* co.uk, com.au and their like: a registry's second level below a country. */
static bool is_registry(const char *base)
{
	static const char *const words[] = {"co",  "com", "net", "org", "ac",  "gov",
					    "edu", "or",  "ne",  "go",  "gob", "mil"};
	const char *dot = strchr(base, '.');

	if (!dot)
		return true;
	if (strlen(dot + 1) != 2)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strlen(words[i]) == (size_t)(dot - base) &&
		    strncmp(base, words[i], (size_t)(dot - base)) == 0)
			return true;
	return false;
}

static enum egress_broad of_host(const char *host, const char **ret_what)
{
	for (size_t i = 0; i < ARRAY_LEN(shareds); i++)
		if (shareds[i].kind == SHARED_PATH && strcmp(host, shareds[i].name) == 0) {
			*ret_what = shareds[i].name;
			return EGRESS_BROAD_PATH;
		}
	return EGRESS_NARROW;
}

enum egress_broad egress_rule_broad(const struct egress_rule *r, const char **ret_what)
{
	*ret_what = "";
	if (r->kind == EGRESS_EVERY)
		return EGRESS_BROAD_ALL;
	if (r->kind == EGRESS_PREFIX)
		return r->bits < (r->addr.family == 4 ? 16 : 48) ? EGRESS_BROAD_ADDRESSES
								 : EGRESS_NARROW;
	if (r->kind == EGRESS_LOOPBACK)
		return EGRESS_NARROW;
	const char *base = base_of(r);
	if (!base)
		return of_host(r->host, ret_what);
	*ret_what = base;
	if (is_registry(base))
		return EGRESS_BROAD_TOP;
	for (size_t i = 0; i < ARRAY_LEN(shareds); i++) {
		const struct shared *s = &shareds[i];
		bool hit = strcmp(base, s->name) == 0 || is_below(s->name, base);
		if (s->kind == SHARED_PATH
			    ? !hit
			    : !hit && (s->kind != SHARED_DEEP || !is_below(base, s->name)))
			continue;
		*ret_what = s->name;
		return s->kind == SHARED_PATH ? EGRESS_BROAD_PATH : EGRESS_BROAD_HOST;
	}
	return of_host(r->kind == EGRESS_BOTH ? r->host : "", ret_what);
}

const char *egress_rule_push(const struct egress_rule *r)
{
	if (!egress_rule_opens(r) || r->kind == EGRESS_LOOPBACK)
		return NULL;
	if (r->port == 0)
		return "every port, 22 among them";
	if (r->port == 22)
		return "port 22 (ssh)";
	if (r->port == 9418)
		return "port 9418 (git)";
	for (size_t i = 0; i < ARRAY_LEN(forges) && (r->port == 443 || r->port == 80); i++) {
		struct host h = {.kind = HOST_NAME};
		memcpy(h.text, forges[i], strlen(forges[i]) + 1);
		if (egress_rule_has_name(r, &h))
			return forges[i];
	}
	return NULL;
}
