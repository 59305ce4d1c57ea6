/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses, and what kind of place one is. Pure: nothing is resolved or opened.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADDRESS_TEXT 46 /* the longest IPv6 text and its NUL (INET6_ADDRSTRLEN) */

struct address {
	uint8_t family;      /* 4 or 6 */
	unsigned char b[16]; /* network order; of IPv4 the first four, the others 0 */
};

/*
 * Only ADDRESS_PUBLIC is reached by the rule of a name. Each other one needs an
 * address rule that names it, and some are never dialled at all.
 */
enum address_class {
	ADDRESS_PUBLIC,
	ADDRESS_UNSPECIFIED, /* 0.0.0.0/8 (RFC 1122 3.2.1.3), :: (RFC 4291 2.5.2) */
	ADDRESS_LOOPBACK,    /* 127.0.0.0/8 (RFC 1122), ::1 (RFC 4291 2.5.3) */
	ADDRESS_PRIVATE,     /* 10/8, 172.16/12, 192.168/16 (RFC 1918), 64:ff9b:1::/48 (RFC 8215) */
	ADDRESS_LINK_LOCAL,  /* 169.254.0.0/16 (RFC 3927), fe80::/10 (RFC 4291 2.5.6) */
	ADDRESS_SHARED,      /* 100.64.0.0/10, carrier-grade NAT (RFC 6598) */
	ADDRESS_METADATA,    /* where clouds tell a machine its credentials; list in address.c */
	ADDRESS_UNIQUE_LOCAL,  /* fc00::/7 (RFC 4193) */
	ADDRESS_SITE_LOCAL,    /* fec0::/10 (RFC 3879, given up) */
	ADDRESS_MULTICAST,     /* 224.0.0.0/4 (RFC 5771), ff00::/8 (RFC 4291 2.7) */
	ADDRESS_BROADCAST,     /* 255.255.255.255 (RFC 919) */
	ADDRESS_DOCUMENTATION, /* 192.0.2/24 and others (RFC 5737), 2001:db8::/32 (RFC 3849), … */
	ADDRESS_SYNTHETIC,     /* 198.18.0.0/15 (RFC 2544) and SYNTHETIC6: ours inside */
	ADDRESS_RESERVED,      /* 240/4 (RFC 1112 4), 192.0.0/24 (RFC 6890), not 2000::/3, … */
	ADDRESS_CLASSES,
};

/* "private", "cloud metadata", …; for messages. */
const char *address_class_name(enum address_class class);

/*
 * The class of an address. IPv6 that carries an IPv4 address (mapped and
 * compatible RFC 4291 2.5.5, 6to4 RFC 3056, Teredo RFC 4380, NAT64 RFC 6052 and
 * 8215, ISATAP RFC 5214) is of the class of what it carries, if that is not public.
 */
enum address_class address_class(const struct address *a);

/*
 * What one can be reached at by an address rule: false for unspecified, multicast,
 * broadcast, synthetic. Loopback is not either: see EGRESS_LOOPBACK in rule.h.
 */
bool address_class_can_open(enum address_class class);

/*
 * The IPv4 addresses that an IPv6 address carries, as above: what a rule about
 * IPv4 has to look at too. Returns how many.
 */
#define MAX_ADDRESS_CARRIED 2
size_t address_carried(const struct address *a, struct address ret[MAX_ADDRESS_CARRIED]);

/* The IPv4 address of ::ffff:a.b.c.d; anything else is left alone. */
void address_unmap(struct address *a);

/* Equal in the first `bits` (0 to 32 or 128); of one family. */
bool address_in(const struct address *a, const struct address *prefix, unsigned int bits);

/* The first and the last address of a prefix are of one class. */
bool address_prefix_uniform(const struct address *first, unsigned int bits);

/* "192.0.2.1", "2001:db8::1" as by RFC 5952, without brackets. Returns ret. */
const char *address_format(const struct address *a, char ret[ADDRESS_TEXT]);

/* From strict text: four decimals without leading zeros, or IPv6 without zone and brackets. */
bool address_parse(const char *s, struct address *ret);

#define SYNTHETIC4 0xc6120000u /* 198.18.0.0 */
#define SYNTHETIC4_BITS 15u
/* fd53:616e:6467::/96; its last 32 bits are those of the IPv4 one. */
#define SYNTHETIC6 "fd53:616e:6467::"
#define SYNTHETIC6_BITS 96u
