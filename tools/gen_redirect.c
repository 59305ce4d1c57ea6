/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes, at build time, the one netlink message that core sends for the way out:
 *
 *   table inet sandglass { chain out { type nat hook output priority dstnat;
 *     meta nfproto ipv4 meta l4proto tcp ip daddr != 127.0.0.0/8 dnat ip to 127.0.0.53:15001
 *     meta nfproto ipv6 meta l4proto tcp ip6 daddr != ::1 dnat ip6 to [::1]:15001 } }
 *
 * In the sandbox's network namespace only what is routed to lo gets that far: its own
 * loopback, and addresses that core has made local. A transaction of nfnetlink: all of
 * it or nothing. Byte order is the machine's, as core runs where it is built for.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#define MAX_BATCH 2048u
#define OURS4 0x7f000035u /* 127.0.0.53 */
#define REDIRECT_PORT 15001

struct batch {
	_Alignas(8) unsigned char b[MAX_BATCH];
	size_t n;
	uint32_t seq;
};

/* Room for n bytes, padded with zeros. */
static void *put(struct batch *t, size_t n)
{
	unsigned char *at = t->b + t->n;

	if (t->n + NLMSG_ALIGN(n) > sizeof(t->b))
		abort();
	t->n += NLMSG_ALIGN(n);
	return at;
}

static void attr(struct batch *t, uint16_t type, const void *value, size_t n)
{
	struct rtattr *a = put(t, sizeof(*a) + n);

	*a = (struct rtattr){.rta_len = (uint16_t)(sizeof(*a) + n), .rta_type = type};
	memcpy(a + 1, value, n);
}

static void attr32(struct batch *t, uint16_t type, uint32_t host_order)
{
	uint32_t v = htonl(host_order);

	attr(t, type, &v, sizeof(v));
}

static void attr_text(struct batch *t, uint16_t type, const char *text)
{
	attr(t, type, text, strlen(text) + 1);
}

static size_t nest(struct batch *t, uint16_t type)
{
	size_t at = t->n;

	attr(t, type | NLA_F_NESTED, "", 0);
	return at;
}

static void nest_end(struct batch *t, size_t at)
{
	((struct rtattr *)(void *)(t->b + at))->rta_len = (uint16_t)(t->n - at);
}

static size_t message(struct batch *t, uint16_t type, uint16_t flags)
{
	size_t at = t->n;
	struct nlmsghdr *h = put(t, sizeof(*h));

	*h = (struct nlmsghdr){.nlmsg_type = type,
			       .nlmsg_flags = NLM_F_REQUEST | flags,
			       .nlmsg_seq = ++t->seq};
	return at;
}

static void message_end(struct batch *t, size_t at)
{
	((struct nlmsghdr *)(void *)(t->b + at))->nlmsg_len = (uint32_t)(t->n - at);
}

static size_t nft_message(struct batch *t, uint16_t type, uint16_t flags)
{
	size_t at = message(t, (NFNL_SUBSYS_NFTABLES << 8) | type, flags);
	struct nfgenmsg *g = put(t, sizeof(*g));

	*g = (struct nfgenmsg){.nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0};
	return at;
}

static void nft_bound(struct batch *t, uint16_t type)
{
	size_t at = message(t, type, 0);
	struct nfgenmsg *g = put(t, sizeof(*g));

	g->res_id = htons(NFNL_SUBSYS_NFTABLES);
	message_end(t, at);
}

/* One step of a rule; the caller puts its attributes and ends both. */
struct step {
	size_t element, data;
};

static struct step step(struct batch *t, const char *name)
{
	struct step s = {.element = nest(t, NFTA_LIST_ELEM)};

	attr_text(t, NFTA_EXPR_NAME, name);
	s.data = nest(t, NFTA_EXPR_DATA);
	return s;
}

static void step_end(struct batch *t, struct step s)
{
	nest_end(t, s.data);
	nest_end(t, s.element);
}

static void value(struct batch *t, uint16_t type, const void *bytes, size_t n)
{
	size_t at = nest(t, type);

	attr(t, NFTA_DATA_VALUE, bytes, n);
	nest_end(t, at);
}

/* Goes on only if what is loaded (a byte of the packet's meta data) is, or is not, that. */
static void meta_is(struct batch *t, uint32_t key, uint8_t wanted)
{
	struct step s = step(t, "meta");

	attr32(t, NFTA_META_DREG, NFT_REG_1);
	attr32(t, NFTA_META_KEY, key);
	step_end(t, s);
	s = step(t, "cmp");
	attr32(t, NFTA_CMP_SREG, NFT_REG_1);
	attr32(t, NFTA_CMP_OP, NFT_CMP_EQ);
	value(t, NFTA_CMP_DATA, &wanted, sizeof(wanted));
	step_end(t, s);
}

static void header_is_not(struct batch *t, uint32_t offset, const void *bytes, uint32_t n)
{
	struct step s = step(t, "payload");

	attr32(t, NFTA_PAYLOAD_DREG, NFT_REG_1);
	attr32(t, NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
	attr32(t, NFTA_PAYLOAD_OFFSET, offset);
	attr32(t, NFTA_PAYLOAD_LEN, n);
	step_end(t, s);
	s = step(t, "cmp");
	attr32(t, NFTA_CMP_SREG, NFT_REG_1);
	attr32(t, NFTA_CMP_OP, NFT_CMP_NEQ);
	value(t, NFTA_CMP_DATA, bytes, n);
	step_end(t, s);
}

static void load(struct batch *t, uint32_t reg, const void *bytes, size_t n)
{
	struct step s = step(t, "immediate");

	attr32(t, NFTA_IMMEDIATE_DREG, reg);
	value(t, NFTA_IMMEDIATE_DATA, bytes, n);
	step_end(t, s);
}

/* TCP of one family to anything but `own`, n bytes at `offset` of the header, goes to `to`. */
static void add_rule(struct batch *t, uint8_t family, uint32_t offset, const void *own, uint32_t n,
		     const void *to, size_t to_n, uint16_t flags)
{
	uint16_t port = htons(REDIRECT_PORT);

	size_t at = nft_message(t, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND | flags);
	attr_text(t, NFTA_RULE_TABLE, "sandglass");
	attr_text(t, NFTA_RULE_CHAIN, "out");
	size_t list = nest(t, NFTA_RULE_EXPRESSIONS);
	meta_is(t, NFT_META_NFPROTO, family);
	meta_is(t, NFT_META_L4PROTO, IPPROTO_TCP);
	header_is_not(t, offset, own, n);
	load(t, NFT_REG_1, to, to_n);
	load(t, NFT_REG_2, &port, sizeof(port));
	struct step s = step(t, "nat");
	attr32(t, NFTA_NAT_TYPE, NFT_NAT_DNAT);
	attr32(t, NFTA_NAT_FAMILY, family);
	attr32(t, NFTA_NAT_REG_ADDR_MIN, NFT_REG_1);
	attr32(t, NFTA_NAT_REG_PROTO_MIN, NFT_REG_2);
	step_end(t, s);
	nest_end(t, list);
	message_end(t, at);
}

int main(void)
{
	static struct batch t;
	uint32_t to4 = htonl(OURS4);
	uint8_t loopback4 = 127;

	nft_bound(&t, NFNL_MSG_BATCH_BEGIN);
	size_t at = nft_message(&t, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	attr_text(&t, NFTA_TABLE_NAME, "sandglass");
	message_end(&t, at);
	at = nft_message(&t, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	attr_text(&t, NFTA_CHAIN_TABLE, "sandglass");
	attr_text(&t, NFTA_CHAIN_NAME, "out");
	attr_text(&t, NFTA_CHAIN_TYPE, "nat");
	size_t hook = nest(&t, NFTA_CHAIN_HOOK);
	attr32(&t, NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
	attr32(&t, NFTA_HOOK_PRIORITY, (uint32_t)-100); /* NF_IP_PRI_NAT_DST */
	nest_end(&t, hook);
	message_end(&t, at);
	/* Where the destination is in the header: at 16 of IPv4, at 24 of IPv6. */
	add_rule(&t, NFPROTO_IPV4, 16, &loopback4, 1, &to4, sizeof(to4), 0);
	/* The last one is acknowledged, or the first that fails is told. */
	add_rule(&t, NFPROTO_IPV6, 24, &in6addr_loopback, 16, &in6addr_loopback, 16, NLM_F_ACK);
	nft_bound(&t, NFNL_MSG_BATCH_END);

	(void)printf(
		"/* Made by tools/gen_redirect.c. */\nstatic const unsigned char redirect_batch[] = {");
	for (size_t i = 0; i < t.n; i++)
		(void)printf("%s0x%02x,", i % 12 ? " " : "\n\t", t.b[i]);
	(void)printf("\n};\n");
	return 0;
}
