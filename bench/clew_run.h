#ifndef CLEW_BENCH_CLEW_RUN_H_
#define CLEW_BENCH_CLEW_RUN_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/result.h"

namespace clew::bench {

// What `clew ... --json` printed, and what it cost with its children.
struct ClewRun {
  nlohmann::json printed;
  double wall_s = 0;
  double cpu_s = 0;
  double rss_mb = 0;  // the largest of any one process
};

// Runs `clew` with `arguments` and --json as a user would. `output_path` is
// where it may print. kUnsupported: it printed no JSON.
[[nodiscard]] Result<ClewRun> RunClew(const std::string& clew,
                                      std::vector<std::string> arguments,
                                      const std::string& output_path);

// Writes `rows` to the file, if it is named.
[[nodiscard]] Status WriteRows(const nlohmann::json& rows,
                               const std::string& path);

}  // namespace clew::bench

#endif  // CLEW_BENCH_CLEW_RUN_H_
