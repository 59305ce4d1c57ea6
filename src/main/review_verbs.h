/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verbs that carry a session's changes somewhere.
 */
#pragma once

int main_apply(int argc, char **argv);
int main_discard(int argc, char **argv);
