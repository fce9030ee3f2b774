#ifndef CLEW_CLI_DAEMON_STATUS_FIELDS_H_
#define CLEW_CLI_DAEMON_STATUS_FIELDS_H_

#include <cstdint>
#include <string>

#include "cli/report.h"

namespace clew::cli {

// A field of clewd's answer, which may come from another version: one that is
// missing or of another type is null, 0, empty or false. `path` names it from
// `json` on: "spool/ready/bundles".
Json Part(const Json& json, const std::string& path);
uint64_t Number(const Json& json, const std::string& path);
std::string Text(const Json& json, const std::string& path);
bool Flag(const Json& json, const std::string& path);

}  // namespace clew::cli

#endif  // CLEW_CLI_DAEMON_STATUS_FIELDS_H_
