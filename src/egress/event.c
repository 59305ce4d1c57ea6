/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of what happened on the way out. Results and the audit log have them.
 */
#include "egress/event.h"

const char *const egress_stores[EGRESS_STORES] = {"/etc/ssl/certs/ca-certificates.crt",
						  "/etc/pki/tls/certs/ca-bundle.crt",
						  "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};

const char *egress_reason_name(enum egress_reason reason)
{
	static const char *const names[EGRESS_WHYS] = {
		[EGRESS_WHY_RULE] = "rule",
		[EGRESS_WHY_DEFAULT] = "default",
		[EGRESS_WHY_PORT] = "port",
		[EGRESS_WHY_DENIED] = "denied",
		[EGRESS_WHY_CLASS] = "address",
		[EGRESS_WHY_LOOPBACK] = "local",
		[EGRESS_WHY_HOST] = "host",
		[EGRESS_WHY_SYNTHETIC] = "synthetic",
		[EGRESS_WHY_SNI] = "sni",
		[EGRESS_WHY_ECH] = "ech",
		[EGRESS_WHY_AUTHORITY] = "authority",
		[EGRESS_WHY_MALFORMED] = "malformed",
		[EGRESS_WHY_PROTOCOL] = "protocol",
		[EGRESS_WHY_LIMIT] = "limit",
		[EGRESS_WHY_UNRESOLVED] = "unresolved",
		[EGRESS_WHY_UNREACHED] = "unreached",
		[EGRESS_WHY_METHOD] = "method",
		[EGRESS_WHY_PATH] = "path",
		[EGRESS_WHY_PUSH] = "push",
		[EGRESS_WHY_CERTIFICATE] = "certificate",
		[EGRESS_WHY_TLS] = "tls",
		[EGRESS_WHY_SECRET] = "secret",
		[EGRESS_WHY_AMBIGUOUS] = "ambiguous",
		[EGRESS_WHY_UNSEEN] = "unseen",
	};

	return reason < EGRESS_WHYS ? names[reason] : "unknown";
}

const char *egress_how_name(enum egress_how how)
{
	static const char *const names[EGRESS_HOWS] = {
		[EGRESS_BY_DNS] = "dns",     [EGRESS_BY_REDIRECT] = "redirect",
		[EGRESS_BY_HTTP] = "http",   [EGRESS_BY_CONNECT] = "connect",
		[EGRESS_BY_SOCKS] = "socks", [EGRESS_BY_LOCAL] = "local",
	};

	return how < EGRESS_HOWS ? names[how] : "unknown";
}
