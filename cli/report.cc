#include "cli/report.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace clew::cli {
int ReportError(const Error& error) {
  // Text before an error must not come out after it.
  std::fflush(stdout);
  fmt::print(stderr, "clew: {}\n", error.message);
  return ExitCodeOf(error.code);
}

int ReportStatus(const Status& status) {
  return status ? kExitOk : ReportError(status.error());
}

void Warn(std::string_view message) {
  std::fflush(stdout);
  fmt::print(stderr, "clew: {}, proceeding anyway\n", message);
}

void PrintJson(const Json& document) {
  fmt::print("{}\n", document.dump(2, ' ', /*ensure_ascii=*/false,
                                   Json::error_handler_t::replace));
}

}  // namespace clew::cli
