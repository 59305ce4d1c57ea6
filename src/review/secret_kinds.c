/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds, the more certain ones first: what one has found, a later one does
 * not tell again. Group 1 is the value where there is one. Examples are made of
 * pieces, so that nobody takes them for real.
 */
#include "base/base.h"
#include "review/secrets.h"

#define A4    \
	"Ab1" \
	"x"
#define A8       \
	A4 "Zq9" \
	   "k"
#define A16       \
	A8 "Lm2"  \
	   "nOp3" \
	   "R"
#define A20 A16 A4
#define A24 A16 A8
#define A32            \
	A16 "Ty7uVw5s" \
	    "Bc6dEf8g"
#define A36 A32 A4
#define A40 A32 A8
#define A64 A32 A32
#define H8     \
	"0a1b" \
	"9c8d"
#define H16       \
	H8 "e2f3" \
	   "4d5c"
#define H32        \
	H16 "7b6a" \
	    "f0e1" \
	    "d2c3" \
	    "b4a5"
#define H40 H32 H8
#define H64 H32 H32
#define UUID_FAKE  \
	"0a1b2c3d" \
	"-4e5f-4071-8293-a4b5c6d7e8f9"
#define B "(?<![A-Za-z0-9_])" /* where a value begins, and ends: */
#define E "(?![A-Za-z0-9_])"

const struct secret_kind secret_kinds[] = {
	{"private-key", "-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----",
	 "-----BEGIN RSA"
	 " PRIVATE KEY-----",
	 "-----BEGIN PUBLIC KEY-----"},
	{"putty-key", "PuTTY-User-Key-File-[0-9]: ",
	 "PuTTY-User-Key"
	 "-File-3: ssh-ed25519",
	 "PuTTY-User-Key"},
	{"age-key", B "(AGE-SECRET-KEY-1[0-9A-Z]{58})" E,
	 "AGE-SECRET"
	 "-KEY-1"
	 "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE",
	 "AGE-SECRET-KEY-1SHORT"},
	{"aws-access-key", B "((?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16})" E,
	 "AK"
	 "IA"
	 "Q2W3E4R5T6Y7U2I3",
	 "AKIAtoolowercase1234"},
	{"aws-secret-key",
	 "(?i)aws.{0,20}(?:secret|private).{0,20}[\"'=: ]+([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
	 "aws_secret_access"
	 "_key = " A40,
	 "aws_secret_access_key = ${KEY}"},
	{"aws-bedrock-key", B "(ABSK[A-Za-z0-9+/]{109,269}={0,2})",
	 "AB"
	 "SK" A64 A32 A20,
	 "ABSK" A16},
	{"google-api-key", B "(AIza[0-9A-Za-z_-]{35})(?![0-9A-Za-z_-])",
	 "AI"
	 "za" A32 "abc",
	 "AIzaSyShort"},
	{"google-oauth-secret", B "(GOCSPX-[0-9A-Za-z_-]{28})(?![0-9A-Za-z_-])",
	 "GOC"
	 "SPX-" A24 A4,
	 "GOCSPX-short"},
	{"google-oauth-token", B "(ya29\\.[0-9A-Za-z_-]{30,})",
	 "ya"
	 "29." A36,
	 "ya29.short"},
	{"google-service-account", "\"private_key_id\"\\s*:\\s*\"([0-9a-f]{40})\"",
	 "\"private_key"
	 "_id\": \"" H40 "\"",
	 "\"private_key_id\": \"\""},
	{"azure-storage-key", "AccountKey=([A-Za-z0-9+/]{86}==)",
	 "Account"
	 "Key=" A64 A20 "ab"
	 "==",
	 "AccountKey=<key>"},
	{"azure-client-secret", B "([A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34})",
	 "abc"
	 "8Q~" A32 "xy",
	 "abc8Q~short"},
	{"azure-sas", "[?&]sig=([A-Za-z0-9%+/]{40,}(?:%3D|=))",
	 "?sv=1&s"
	 "ig=" A40 "xyz%3D",
	 "?sig=short"},
	{"github-token", B "(gh[pousr]_[A-Za-z0-9]{36,255})" E,
	 "gh"
	 "p_" A36,
	 "ghp_short"},
	{"github-fine-grained", B "(github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})" E,
	 "github"
	 "_pat_" A20 "ab"
	 "_" A40 A16 "xyz",
	 "github_pat_" A16},
	{"gitlab-token", B "(gl(?:pat|ptt|dt|rt|cbt|oas|ft|imt|agent|soat)-[A-Za-z0-9_.-]{20,})",
	 "gl"
	 "pat-" A20,
	 "glpat-short"},
	{"bitbucket-token", B "(ATBB[A-Za-z0-9]{32})" E,
	 "AT"
	 "BB" A32,
	 "ATBBshort"},
	{"atlassian-token", B "(ATATT3[A-Za-z0-9_=-]{180,})",
	 "AT"
	 "ATT3" A64 A64 A64,
	 "ATATT3" A16},
	{"slack-token", B "(xox[abeoprs]-[A-Za-z0-9-]{10,250})",
	 "xo"
	 "xb-"
	 "123456789012-" A24,
	 "xoxb-short"},
	{"slack-app-token", B "(xapp-[0-9]-[A-Z0-9]+-[0-9]+-[a-z0-9]{20,})",
	 "xa"
	 "pp-1-"
	 "A0B1C2-123456-" H32,
	 "xapp-1-short"},
	{"slack-webhook",
	 "(https://hooks\\.slack\\.com/(?:services|workflows)/T[A-Za-z0-9/_-]{20,})",
	 "https://hooks"
	 ".slack.com/services/T"
	 "00000000/B00000000/" A24,
	 "https://hooks.slack.com/services/"},
	{"discord-token", B "([MNO][A-Za-z0-9_-]{23,27}\\.[A-Za-z0-9_-]{6}\\.[A-Za-z0-9_-]{27,40})",
	 "M" A20 "abc"
	 "."
	 "AbCdEf"
	 "." A24 "xyz",
	 "Mabc.def.ghi"},
	{"discord-webhook",
	 "(https://discord(?:app)?\\.com/api/webhooks/[0-9]{16,20}/[A-Za-z0-9_-]{60,})",
	 "https://discord"
	 ".com/api/webhooks/"
	 "123456789012345678/" A64,
	 "https://discord.com/api/webhooks/1/x"},
	{"telegram-token", B "([0-9]{8,10}:AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])",
	 "123456789"
	 ":AA" A32 "x",
	 "123456789:AAshort"},
	{"stripe-key", B "((?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,})",
	 "sk"
	 "_live_" A24,
	 "sk_live_short"},
	{"stripe-webhook", B "(whsec_[A-Za-z0-9+/=]{32,})",
	 "wh"
	 "sec_" A32,
	 "whsec_short"},
	{"square-token", B "(sq0(?:atp|csp)-[A-Za-z0-9_-]{22,43})",
	 "sq0"
	 "atp-" A20 "ab",
	 "sq0atp-short"},
	{"paypal-braintree",
	 B "(access_token\\$(?:production|sandbox)\\$[a-z0-9]{16}\\$[0-9a-f]{32})",
	 "access_token"
	 "$production$" H16 "$" H32,
	 "access_token$production$x"},
	{"shopify-token", B "(shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32})" E,
	 "shp"
	 "at_" H32,
	 "shpat_short"},
	{"twilio-key", B "(SK[0-9a-f]{32})" E,
	 "S"
	 "K" H32,
	 "SK" H16},
	{"sendgrid-key", B "(SG\\.[A-Za-z0-9_-]{22}\\.[A-Za-z0-9_-]{43})",
	 "S"
	 "G." A20 "ab." A40 "xyz",
	 "SG.short.key"},
	{"mailgun-key", B "(key-[0-9a-f]{32})" E,
	 "ke"
	 "y-" H32,
	 "key-" H16},
	{"mailchimp-key", B "([0-9a-f]{32}-us[0-9]{1,2})" E,
	 H32 "-u"
	     "s12",
	 H16 "-us12"},
	{"postmark-token",
	 "(?i)postmark.{0,20}(?:token|key)[\"'=: ]+("
	 "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",
	 "POSTMARK"
	 "_TOKEN=" UUID_FAKE,
	 "POSTMARK_TOKEN=x"},
	{"openai-key",
	 B "(sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,74}T3BlbkFJ[A-Za-z0-9_-]{20,74})",
	 "sk"
	 "-proj-" A24 "T3Bl"
	 "bkFJ" A24,
	 "sk-proj-" A16},
	{"anthropic-key", B "(sk-ant-[a-z0-9]{3,12}-[A-Za-z0-9_-]{80,})",
	 "sk"
	 "-ant-"
	 "api03-" A64 A32,
	 "sk-ant-api03-short"},
	{"groq-key", B "(gsk_[A-Za-z0-9]{52})" E,
	 "gs"
	 "k_" A40 A8 A4,
	 "gsk_short"},
	{"xai-key", B "(xai-[A-Za-z0-9]{80})" E,
	 "xa"
	 "i-" A64 A16,
	 "xai-short"},
	{"perplexity-key", B "(pplx-[A-Za-z0-9]{48})" E,
	 "pp"
	 "lx-" A32 A16,
	 "pplx-short"},
	{"openrouter-key", B "(sk-or-v1-[0-9a-f]{64})" E,
	 "sk"
	 "-or-v1-" H64,
	 "sk-or-v1-" H16},
	{"replicate-token", B "(r8_[A-Za-z0-9]{37})" E,
	 "r"
	 "8_" A36 "x",
	 "r8_short"},
	{"hugging-face-token", B "(hf_[A-Za-z]{34})" E,
	 "h"
	 "f_"
	 "AbcDefGhiJklMnoPqrStuVwxYzAbcDefGh",
	 "hf_hub_download"},
	{"e2b-key", B "(e2b_[0-9a-f]{40})" E,
	 "e2"
	 "b_" H40,
	 "e2b_" H16},
	{"npm-token", B "(npm_[A-Za-z0-9]{36})" E,
	 "np"
	 "m_" A36,
	 "npm_config_registry"},
	{"npmrc-auth", "(?m)^[^#\\n]{0,200}:_(?:authToken|password)\\s*=\\s*([^\\s$]{8,})",
	 "//registry.example.com/:_auth"
	 "Token=" A20,
	 "//registry.example.com/:_authToken=${T}"},
	{"pypi-token", B "(pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,})",
	 "py"
	 "pi-AgEIcHlwaS5vcmc" A64,
	 "pypi-AgEIcHlwaS5vcmc"},
	{"rubygems-key", B "(rubygems_[0-9a-f]{48})" E,
	 "ruby"
	 "gems_" H32 H16,
	 "rubygems_version"},
	{"crates-token", B "(cio[A-Za-z0-9]{32})" E,
	 "ci"
	 "o" A32,
	 "cioShort"},
	{"docker-token", B "(dckr_pat_[A-Za-z0-9_-]{27})",
	 "dckr"
	 "_pat_" A24 "abc",
	 "dckr_pat_x"},
	{"digitalocean-token", B "(do[opr]_v1_[0-9a-f]{64})" E,
	 "do"
	 "p_v1_" H64,
	 "dop_v1_" H16},
	{"heroku-key", B "(HRKU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",
	 "HR"
	 "KU-" UUID_FAKE,
	 "HRKU-x"},
	{"fly-token", B "(fm[12][ar]?_[A-Za-z0-9+/]{100,}={0,2})",
	 "fm"
	 "2_" A64 A40,
	 "fm2_short"},
	{"vercel-blob-token", B "(vercel_blob_rw_[A-Za-z0-9]{16,}_[A-Za-z0-9]{20,})",
	 "vercel"
	 "_blob_rw_" A16 "_" A32,
	 "vercel_blob_rw_x"},
	{"netlify-token", B "(nfp_[A-Za-z0-9]{36,})",
	 "nf"
	 "p_" A40,
	 "nfp_short"},
	{"supabase-key", B "(sb(?:p_[0-9a-f]{40}|_secret_[A-Za-z0-9_-]{31}))",
	 "sb"
	 "p_" H40,
	 "sbp_short"},
	{"databricks-token", B "(dapi[0-9a-f]{32}(?:-[0-9])?)" E,
	 "da"
	 "pi" H32,
	 "dapi" H16},
	{"doppler-token", B "(dp\\.(?:pt|st|ct|sa|scim|audit)\\.[A-Za-z0-9.]{40,})",
	 "dp"
	 ".pt." A40 A4,
	 "dp.pt.short"},
	{"vault-token", B "(hv[sbr]\\.[A-Za-z0-9_-]{24,})",
	 "hv"
	 "s." A24,
	 "hvs.short"},
	{"terraform-token", B "([A-Za-z0-9]{14}\\.atlasv1\\.[A-Za-z0-9_=-]{60,})",
	 "Ab1xZq9kLm2nOp"
	 ".atlas"
	 "v1." A64,
	 "x.atlasv1.y"},
	{"pulumi-token", B "(pul-[0-9a-f]{40})" E,
	 "pu"
	 "l-" H40,
	 "pul-" H16},
	{"grafana-token", B "(gl(?:c_[A-Za-z0-9+/]{32,}={0,2}|sa_[A-Za-z0-9]{32}_[0-9a-f]{8}))",
	 "gl"
	 "sa_" A32 "_" H8,
	 "glsa_short"},
	{"new-relic-key", B "(NRAK-[A-Z0-9]{27})" E,
	 "NR"
	 "AK-"
	 "ABCDEFGHIJ0123456789ABCDEFG",
	 "NRAK-SHORT"},
	{"sentry-token", B "(sntry[su]_[A-Za-z0-9+/=_]{40,})",
	 "snt"
	 "rys_" A64,
	 "sntrys_short"},
	{"dynatrace-token", B "(dt0c01\\.[A-Z0-9]{24}\\.[A-Z0-9]{64})",
	 "dt0"
	 "c01.ABCDEFGHIJKLMNOPQRSTUVWX.ABCDEFGHIJKLMNOPQRSTUVWXYZ234567ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
	 "dt0c01.SHORT"},
	{"linear-key", B "(lin_api_[A-Za-z0-9]{40})" E,
	 "lin"
	 "_api_" A40,
	 "lin_api_short"},
	{"notion-token", B "((?:secret_[A-Za-z0-9]{43}|ntn_[A-Za-z0-9]{46}))" E,
	 "nt"
	 "n_" A40 "abcdef",
	 "secret_key_name"},
	{"airtable-token", B "(pat[A-Za-z0-9]{14}\\.[0-9a-f]{64})" E,
	 "pa"
	 "tAb1xZq9kLm2nOp." H64,
	 "pattern.matching"},
	{"figma-token", B "(figd_[A-Za-z0-9_-]{40})",
	 "fi"
	 "gd_" A40,
	 "figd_short"},
	{"postman-key", B "(PMAK-[0-9a-f]{24}-[0-9a-f]{34})" E,
	 "PM"
	 "AK-" H16 H8 "-" H32 "ab",
	 "PMAK-short"},
	{"telnyx-key", B "(KEY[0-9A-F]{32}_[A-Za-z0-9]{22})" E,
	 "KE"
	 "Y0123456789ABCDEF0123456789ABCDEF_" A20 "ab",
	 "KEY0123_x"},
	{"tailscale-key", B "(tskey-[a-z]+-[A-Za-z0-9]{8,}-[A-Za-z0-9]{20,})",
	 "ts"
	 "key-auth-" A16 "-" A24,
	 "tskey-auth-x"},
	{"jwt", B "(eyJ[A-Za-z0-9_-]{10,}\\.eyJ[A-Za-z0-9_-]{10,}\\.[A-Za-z0-9_-]{20,})",
	 "ey"
	 "J" A16 ".ey"
	 "J" A16 "." A32,
	 "eyJhbGciOi.short"},
	{"basic-auth-url",
	 "[a-z][a-z0-9+.-]{1,20}://[^\\s:/@\"'$<{]{1,80}:([^\\s:/@\"'$<{]{4,80})@[A-Za-z0-9.-]+",
	 "postgres://app:"
	 "hunter2x@"
	 "db.example.com/app",
	 "https://example.com:8080/@scope"},
	{"authorization-header",
	 "(?i)authorization[\"']?\\s*[:=]\\s*[\"']?(?:bearer|basic|token)\\s+([A-Za-z0-9+/=_.~-]{20,})",
	 "Authori"
	 "zation: Bearer " A32,
	 "Authorization: Bearer $TOKEN"},
	{"htpasswd-hash", "(?m)^[^\\s:]{1,64}:(\\$(?:apr1|2[aby]|5|6|y)\\$[A-Za-z0-9./$]{20,})",
	 "root:$"
	 "6$" A8 "$" A64,
	 "root:x:0:0"},
	{"assigned-secret",
	 "(?i)(?:passw(?:or)?d|passphrase|secret|api_?key|access_?key|auth_?token|private_?key|client_?secret)"
	 "[A-Za-z0-9_]{0,20}[\"']?\\s{0,4}(?:=|:|=>|:=)\\s{0,4}[\"']([^\"'\\s${}<>]{12,100})[\"']",
	 "db_pass"
	 "word = \"" A16 "\"",
	 "password = \"${DB_PASSWORD}\""},
};

const size_t secret_kind_count = ARRAY_LEN(secret_kinds);
