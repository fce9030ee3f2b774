#ifndef CLEW_CLI_REPORT_H_
#define CLEW_CLI_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "common/result.h"

// What every subcommand prints, in one shape: results on stdout, as text for
// people or with --json as one JSON document, and trouble as one line on
// stderr. Not thread-safe.

namespace clew::cli {

// JSON objects keep the order in which their fields were set.
using Json = nlohmann::ordered_json;

// Prints "clew: <message>" to stderr and returns the exit code for the cause.
[[nodiscard]] int ReportError(const Error& error);

// Does the same for work that ends without a value. Returns kExitOk, or what
// ReportError returns.
[[nodiscard]] int ReportStatus(const Status& status);

// Prints "clew: <message>, proceeding anyway" to stderr.
void Warn(std::string_view message);

// Prints one document to stdout, indented, with a final newline. Bytes that are
// not UTF-8 (file names may hold them) become U+FFFD.
void PrintJson(const Json& document);

}  // namespace clew::cli

#endif  // CLEW_CLI_REPORT_H_
