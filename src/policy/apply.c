/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options are the highest layer, so merging is filling the gaps they left.
 */
#include "policy/apply.h"

void policy_apply(struct request *req, const struct compiled *c)
{
	if (req->writes == WRITES_UNSET)
		req->writes = c && c->writes != WRITES_UNSET ? c->writes : WRITES_DIRECT;
	if (req->mode == MODE_UNSET)
		req->mode = c && c->mode != MODE_UNSET ? c->mode : MODE_WORKSPACE_WRITE;
	req->narrowed = 0;
	if (!c)
		return;
	for (unsigned int i = 0; i < LIMIT_SETTINGS; i++) {
		uint64_t *value = request_limit(req, i);
		if (*value != LIMIT_UNSET)
			continue;
		*value = c->limit[i];
		req->narrowed |= c->narrowed & 1u << i;
	}
	req->rules = c->rules;
	req->rule_count = c->rule_count;
	req->file_env = c->env;
	req->file_env_count = c->env_count;
	req->hosts = c->hosts;
	req->host_count = c->host_count;
	req->secrets = c->secrets;
	req->secret_count = c->secret_count;
}
