/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The authority. Safe because its key is made here and never leaves: it is in no file,
 * no message and no descriptor, and the process cannot be dumped (confine.c). All
 * leaves have one key of their own, which is not the authority's.
 */
#include "proxy/ca.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/base.h"
#include "egress/event.h"
#include "egress/host.h"

#define CA_NAME "sandglass session authority"
#define SERIAL_BYTES 16
#define MAX_COMMON_NAME 64 /* ub-common-name, RFC 5280 A.1 */

struct kept_leaf {
	char host[HOST_TEXT];
	X509 *cert;
	uint64_t used;
};

struct ca {
	X509 *cert;
	EVP_PKEY *key;
	EVP_PKEY *leaf_key;
	struct kept_leaf *v; /* MAX_LEAVES */
	size_t n;
	uint64_t clock; /* counts uses */
};

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	X509_EXTENSION *x = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	bool good = x && X509_add_ext(cert, x, -1) == 1;
	X509_EXTENSION_free(x);
	return good;
}

/* A serial that nobody can guess and that is positive: RFC 5280, 4.1.2.2. */
static bool set_serial(X509 *cert)
{
	unsigned char raw[SERIAL_BYTES];

	if (RAND_bytes(raw, sizeof(raw)) != 1)
		return false;
	raw[0] = (unsigned char)((raw[0] & 0x7f) | 0x40);
	BIGNUM *n = BN_bin2bn(raw, sizeof(raw), NULL);
	bool good = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
	BN_free(n);
	return good;
}

/* What every certificate of ours has. The name is text; leaves may have none. */
static X509 *begin(EVP_PKEY *key, const char *name, X509 *issuer)
{
	X509 *cert = X509_new();

	if (!cert)
		return NULL;
	X509_NAME *subject = X509_get_subject_name(cert);
	bool good = X509_set_version(cert, X509_VERSION_3) == 1 && set_serial(cert) &&
		    X509_gmtime_adj(X509_getm_notBefore(cert), -(long)CA_BACKDATE_S) &&
		    X509_time_adj_ex(X509_getm_notAfter(cert), CA_DAYS, 0, NULL) &&
		    X509_set_pubkey(cert, key) == 1;
	if (good && name[0])
		good = X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_ASC,
						  (const unsigned char *)name, -1, -1, 0) == 1;
	if (good &&
	    X509_set_issuer_name(cert, issuer ? X509_get_subject_name(issuer) : subject) == 1)
		return cert;
	X509_free(cert);
	return NULL;
}

static bool make_authority(struct ca *ca)
{
	ca->cert = begin(ca->key, CA_NAME, NULL);
	return ca->cert &&
	       add_extension(ca->cert, ca->cert, NID_basic_constraints,
			     "critical,CA:TRUE,pathlen:0") &&
	       add_extension(ca->cert, ca->cert, NID_key_usage, "critical,keyCertSign") &&
	       add_extension(ca->cert, ca->cert, NID_subject_key_identifier, "hash") &&
	       X509_sign(ca->cert, ca->key, EVP_sha256()) > 0;
}

int ca_new(struct ca **ret, struct err *e)
{
	struct ca *ca = calloc(1, sizeof(*ca));

	if (ca) {
		ca->v = calloc(MAX_LEAVES, sizeof(*ca->v));
		ca->key = EVP_EC_gen("P-256");
		ca->leaf_key = EVP_EC_gen("P-256");
	}
	if (!ca || !ca->v || !ca->key || !ca->leaf_key || !make_authority(ca)) {
		ca_free(ca);
		return err_set(e, ERR_INTERNAL, "no certificate authority could be made");
	}
	*ret = ca;
	return 0;
}

void ca_free(struct ca *ca)
{
	if (!ca)
		return;
	for (size_t i = 0; i < ca->n; i++)
		X509_free(ca->v[i].cert);
	free(ca->v);
	X509_free(ca->cert);
	EVP_PKEY_free(ca->key);
	EVP_PKEY_free(ca->leaf_key);
	free(ca);
}

size_t ca_pem(const struct ca *ca, char *ret, size_t room)
{
	BIO *b = BIO_new(BIO_s_mem());
	size_t n = 0;
	char *p = NULL;

	if (b && PEM_write_bio_X509(b, ca->cert) == 1) {
		long len = BIO_get_mem_data(b, &p);
		if (len > 0 && (size_t)len < room) {
			n = (size_t)len;
			memcpy(ret, p, n);
			ret[n] = '\0';
		}
	}
	BIO_free(b);
	return n;
}

/*
 * The name it is for, as the one thing a client looks at (RFC 6125, RFC 9525). `host` is
 * canonical: letters, digits, `-_.:`, which are no syntax of this text.
 */
static X509 *make_leaf(struct ca *ca, const char *host, bool is_address)
{
	char alt[HOST_TEXT + 16];
	X509 *cert = begin(ca->leaf_key, strlen(host) <= MAX_COMMON_NAME ? host : "", ca->cert);

	(void)snprintf(alt, sizeof(alt), "%s%s:%s",
		       strlen(host) <= MAX_COMMON_NAME ? "" : "critical,",
		       is_address ? "IP" : "DNS", host);
	if (cert && add_extension(cert, ca->cert, NID_basic_constraints, "critical,CA:FALSE") &&
	    add_extension(cert, ca->cert, NID_key_usage, "critical,digitalSignature") &&
	    add_extension(cert, ca->cert, NID_ext_key_usage, "serverAuth") &&
	    add_extension(cert, ca->cert, NID_subject_alt_name, alt) &&
	    add_extension(cert, ca->cert, NID_subject_key_identifier, "hash") &&
	    add_extension(cert, ca->cert, NID_authority_key_identifier, "keyid") &&
	    X509_sign(cert, ca->key, EVP_sha256()) > 0)
		return cert;
	X509_free(cert);
	return NULL;
}

/* A free place, or that of the leaf which was used longest ago. */
static struct kept_leaf *place_for(struct ca *ca)
{
	struct kept_leaf *oldest = ca->v;

	if (ca->n < MAX_LEAVES)
		return &ca->v[ca->n++];
	for (size_t i = 1; i < ca->n; i++)
		if (ca->v[i].used < oldest->used)
			oldest = &ca->v[i];
	X509_free(oldest->cert); /* connections that show it hold it, too */
	return oldest;
}

bool ca_leaf(struct ca *ca, const char *host, bool is_address, struct leaf *ret)
{
	struct kept_leaf *k = NULL;

	for (size_t i = 0; i < ca->n && !k; i++)
		if (strcmp(ca->v[i].host, host) == 0)
			k = &ca->v[i];
	if (!k) {
		X509 *cert = strlen(host) < HOST_TEXT ? make_leaf(ca, host, is_address) : NULL;
		if (!cert)
			return false;
		k = place_for(ca);
		k->cert = cert;
		(void)snprintf(k->host, sizeof(k->host), "%s", host);
	}
	k->used = ++ca->clock;
	*ret = (struct leaf){k->cert, ca->leaf_key};
	return true;
}

X509_STORE *ca_host_store(struct err *e)
{
	X509_STORE *store = X509_STORE_new();

	if (!store) {
		(void)err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	for (size_t i = 0; i < EGRESS_STORES; i++)
		if (X509_STORE_load_file(store, egress_stores[i]) == 1)
			return store;
	X509_STORE_free(store);
	(void)err_set(
		e, ERR_SANDBOX_UNAVAILABLE,
		"no certificate authorities to check servers with: %s and its like are missing",
		egress_stores[0]);
	(void)err_hint(e,
		       "install the package ca-certificates, or take network.inspect, rules with "
		       "methods or paths, and secrets out of the policy");
	return NULL;
}
