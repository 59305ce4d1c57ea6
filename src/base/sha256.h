/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4), for the front, which links no library.
 */
#pragma once

#include <stddef.h>

#define SHA256_BYTES 32

void sha256(const void *p, size_t n, unsigned char ret[SHA256_BYTES]);
