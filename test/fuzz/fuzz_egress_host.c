/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: hosts from foreign bytes. What is accepted is canonical: reading
 * its text again gives the same host, and it holds nothing that another reader
 * could take for something else. Also the address parser against inet_pton().
 */
#include "egress/host.h"

#include <arpa/inet.h>

#include "fuzz_base.h"

static void check_name(const struct host *h)
{
	size_t n = strlen(h->text);

	FUZZ_CHECK(n >= 1 && n <= MAX_HOST_NAME);
	FUZZ_CHECK(strspn(h->text, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == n);
	FUZZ_CHECK(h->text[0] != '.' && h->text[n - 1] != '.' && !strstr(h->text, ".."));
	/* Nothing that libc would take for an address. */
	FUZZ_CHECK(inet_aton(h->text, &(struct in_addr){0}) == 0);
}

static void check(const struct host *h)
{
	struct host again;
	struct address a;
	char text[ADDRESS_TEXT];

	FUZZ_CHECK(host_read(h->text, strlen(h->text), &again) == HOST_GOOD);
	FUZZ_CHECK(again.kind == h->kind && strcmp(again.text, h->text) == 0);
	if (h->kind == HOST_NAME) {
		check_name(h);
		return;
	}
	FUZZ_CHECK(memcmp(&again.addr, &h->addr, sizeof(h->addr)) == 0);
	FUZZ_CHECK(h->addr.family == (h->kind == HOST_V4 ? 4 : 6));
	FUZZ_CHECK(address_parse(h->text, &a) && memcmp(&a, &h->addr, sizeof(a)) == 0);
	FUZZ_CHECK(strcmp(address_format(&a, text), h->text) == 0);
	FUZZ_CHECK(address_class(&a) < ADDRESS_CLASSES);
}

static void check_port(const uint8_t *data, size_t size)
{
	struct host h;
	struct host again;
	uint16_t port = 0;
	uint16_t twice = 0;
	char text[HOST_PORT_TEXT];

	if (host_port_read(data, size, 443, &h, &port) != HOST_GOOD)
		return;
	FUZZ_CHECK(port > 0);
	check(&h);
	host_port_format(&h, port, text);
	FUZZ_CHECK(host_port_read(text, strlen(text), 0, &again, &twice) == HOST_GOOD);
	FUZZ_CHECK(twice == port && strcmp(again.text, h.text) == 0);
}

static void check_libc(const char *s)
{
	unsigned char want[16];
	struct address a;
	int family = strchr(s, ':') ? AF_INET6 : AF_INET;
	bool libc = inet_pton(family, s, want) == 1;

	FUZZ_CHECK(address_parse(s, &a) == libc);
	FUZZ_CHECK(!libc || memcmp(a.b, want, family == AF_INET ? 4 : 16) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct host h;
	char *s = fuzz_string(data, size);

	enum host_bad bad = host_read(data, size, &h);
	FUZZ_CHECK(bad < HOST_BADS);
	if (bad == HOST_GOOD)
		check(&h);
	check_port(data, size);
	check_libc(s);
	free(s);
	return 0;
}
