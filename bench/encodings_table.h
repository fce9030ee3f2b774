#ifndef CLEW_BENCH_ENCODINGS_TABLE_H_
#define CLEW_BENCH_ENCODINGS_TABLE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "constraints/trace.h"
#include "solver/smt/order_formula.h"

namespace clew::bench {

// What of a recording's trace the formulas have.
enum class Form : uint8_t {
  kPublished,  // racey recorded by this program: kOrder; else kValues
  kOrder,      // which read sees which write, at the recorded addresses
  kValues,     // and values, with all paths, addresses and system calls
};

struct Settings {
  Form form = Form::kPublished;
  double seconds = 60;                        // for each row
  uint64_t z3_bytes_max = uint64_t{4} << 30;  // that Z3 may map
  std::vector<std::string> methods = {"clap", "core", "time", "default"};
  std::vector<uint32_t> racey = {100, 500, 1000, 1500};  // iterations
};

// Verdicts beside those of the solver.
inline constexpr const char* kError = "error";       // the note says which
inline constexpr const char* kRefused = "refused";   // by the checker: a bug
inline constexpr const char* kNoTrace = "no trace";  // the note says why

// One method on one instance.
struct Row {
  std::string instance;
  std::string method;
  uint64_t accesses = 0;
  std::optional<solver::FormulaCounts> counts =
      std::nullopt;                              // absent: there is no trace
  std::optional<double> seconds = std::nullopt;  // absent: nothing was solved
  // Of processor time in `seconds`, children included: how much of a limit was
  // really had on a machine that does other things.
  double cpu_seconds = 0;
  std::string verdict = kError;
  std::string note = "";
};

// Prints each row as it comes and keeps it.
class Table {
 public:
  Table();  // prints the heading
  void Add(const Row& row);
  // Whether a row says kError or kRefused.
  bool failed() const { return failed_; }
  // An array with one object a row.
  [[nodiscard]] Status WriteJson(const std::string& path) const;

 private:
  nlohmann::json rows_ = nlohmann::json::array();
  bool failed_ = false;
};

// nullopt for "default" and names of nothing.
std::optional<solver::EncodingKind> EncodingCalled(const std::string& method);

// Counts the formula of `trace`, puts it to Z3 in a child process and checks
// the answer. `order_only`: values, conditions and final memory are left out.
Row SolveEncoding(const std::string& instance,
                  const constraints::ConstraintTrace& trace, bool order_only,
                  solver::EncodingKind encoding, const Settings& settings);

}  // namespace clew::bench

#endif  // CLEW_BENCH_ENCODINGS_TABLE_H_
