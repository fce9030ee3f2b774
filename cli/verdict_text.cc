#include "cli/verdict_text.h"

#include <fmt/format.h>

#include "common/linux/syscall_table.h"
#include "constraints/verdict.h"

namespace clew::cli {

const char* VerdictName(const solver::SolveReport& report) {
  return report.difference ? "model-differs" : ToString(report.verdict);
}

std::string Describe(const solver::ModelDifference& difference,
                     const std::string& place) {
  if (difference.at.text.empty()) {
    return "every order was refuted, and nobody could go on";
  }
  return fmt::format(
      "{}at {}, thread {}, instruction {}: {}",
      difference.last_call
          ? fmt::format("after `{}`, ", SyscallName(*difference.last_call))
          : "",
      place, difference.at.tid, difference.at.insn_index, difference.at.text);
}

}  // namespace clew::cli
