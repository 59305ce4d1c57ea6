# SPDX-License-Identifier: Apache-2.0
#
# A thin front for meson (tools/build). Products are in build/.

DESTDIR ?=
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 20

all:
	@tools/build release build

install: all
	@tools/install build "$(DESTDIR)" "$(PREFIX)"

# A tarball in build/dist, and what shows that it works elsewhere.
dist: all
	@tools/dist build

check-dist: dist
	@tools/check-dist build/dist

# Everything: layers, budgets, unit tests, cases, sanitizers. See also ./check,
# which installs what is missing first.
check:
	@./check --no-install

unit:
	@tools/build unit build/unit
	@tools/run-unit build/unit

asan:
	@tools/build asan build/asan
	@tools/check-instrumented build/asan/sandglass-core

fuzz:
	@tools/build fuzz build/fuzz
	@tools/run-fuzz build/fuzz $(FUZZ_SECONDS)

tidy:
	@tools/build asan build/asan
	@tools/run-tidy build/asan

bench: all
	@bench/run

# What depends on the kernel, under Debian's 6.1 and 6.12 in an emulated machine.
kernels: all
	@tools/kernels

format:
	@tools/format

clean:
	@rm -rf build

.PHONY: all install dist check-dist check unit asan fuzz tidy bench kernels format clean
