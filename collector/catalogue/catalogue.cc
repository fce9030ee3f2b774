#include "collector/catalogue/catalogue.h"

#include <algorithm>
#include <array>
#include <utility>

#include "collector/catalogue/sqlite.h"
#include "collector/catalogue/sqlite_catalogue.h"
#include "collector/catalogue/text.h"
#include "common/text/hex.h"
#include "common/text/path_names.h"

namespace clew::collector {
namespace {

constexpr std::array<std::string_view, kBundleStates> kStateNames = {
    "stored",        "analysing", "solving",      "witness",
    "contradiction", "unsolved",  "model-differs"};

}  // namespace

std::string CleanName(std::string_view text_untrusted) {
  return CleanLine(text_untrusted, kNameBytesMax);
}

std::string ProgramOf(std::string_view command) {
  const std::string_view word = command.substr(0, command.find(' '));
  return BaseName(word);
}

std::string_view ToString(BundleState state) {
  return kStateNames.at(static_cast<size_t>(state));
}

std::optional<BundleState> StateNamed(std::string_view name) {
  const auto* found = std::ranges::find(kStateNames, name);
  return found == kStateNames.end() ? std::nullopt
                                    : std::optional(static_cast<BundleState>(
                                          found - kStateNames.begin()));
}

Analysis AnalysisByKind(std::string_view failure, std::string_view command) {
  const std::string what =
      failure.empty() ? "unknown failure" : CleanName(failure);
  const std::string program = CleanName(ProgramOf(command));
  const std::string text = fmt::format("no backtrace\n{}\n{}", what, program);
  return {
      .signature = ToHex(transfer::Sha256Of(std::as_bytes(std::span(text)))),
      .title = fmt::format("{} in {} (no backtrace)", what,
                           program.empty() ? "unknown program" : program),
      .backtraces = "",
      .program = program};
}

Result<std::unique_ptr<Catalogue>> Catalogue::Open(const std::string& path,
                                                   Check check) {
  CLEW_ASSIGN_OR_RETURN(database,
                        Database::Open(path, Database::Mode::kReadWriteCreate));
  CLEW_RETURN_IF_ERROR(PrepareCatalogue(database, path, check));
  return std::make_unique<SqliteCatalogue>(path, std::move(database));
}

}  // namespace clew::collector
