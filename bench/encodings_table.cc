#include "bench/encodings_table.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>

#include "bench/cpu_time.h"
#include "constraints/check_order.h"
#include "constraints/verdict.h"
#include "solver/smt/z3_backend.h"

namespace clew::bench {
namespace {

using constraints::ConstraintTrace;
using constraints::Verdict;
using solver::EncodingKind;

// What Z3 found, against the part of the trace that the encoding uses.
Status Check(const ConstraintTrace& trace, const solver::Z3Options& options,
             const solver::Z3Answer& answer) {
  constraints::Assignment unknowns;
  for (const auto& [var, value] : answer.unknowns) {
    unknowns.Set(var, value);
  }
  return constraints::CheckOrder(solver::WhatEncodingUses(trace, options),
                                 answer.order, unknowns);
}

// Why there is no witness.
std::string NoteOf(const ConstraintTrace& trace,
                   const solver::Z3Answer& answer) {
  if (answer.verdict != Verdict::kUnsat) {
    return answer.why;
  }
  std::string text = "in conflict: ";
  for (const constraints::GroupId group : answer.conflicting) {
    text += trace.groups[group.as_int()].label + "; ";
  }
  return text + "and the certain order";
}

std::string CountOf(const Row& row, uint64_t solver::FormulaCounts::* count) {
  return row.counts ? fmt::format("{}", (*row.counts).*count) : "-";
}

nlohmann::json ToJson(const Row& row) {
  nlohmann::json json = {{"instance", row.instance},
                         {"method", row.method},
                         {"verdict", row.verdict},
                         {"note", row.note}};
  if (row.counts) {
    json["accesses"] = row.accesses;
    json["variables"] = row.counts->variables;
    json["constraints"] = row.counts->constraints;
    json["read_write_constraints"] = row.counts->read_write;
  }
  if (row.seconds) {
    json["seconds"] = *row.seconds;
    json["cpu_seconds"] = row.cpu_seconds;
  }
  return json;
}

constexpr const char* kLine =
    "{:<18} {:<8} {:>8} {:>9} {:>12} {:>12} {:>8} {:>8} {:<8} {}\n";

}  // namespace

Table::Table() {
  fmt::print(fmt::runtime(kLine), "instance", "method", "accesses", "variables",
             "constraints", "read-write", "time s", "CPU s", "verdict", "note");
  std::fflush(stdout);
}

void Table::Add(const Row& row) {
  fmt::print(fmt::runtime(kLine), row.instance, row.method,
             row.counts ? fmt::format("{}", row.accesses) : "-",
             CountOf(row, &solver::FormulaCounts::variables),
             CountOf(row, &solver::FormulaCounts::constraints),
             CountOf(row, &solver::FormulaCounts::read_write),
             row.seconds ? fmt::format("{:.3f}", *row.seconds) : "-",
             row.seconds ? fmt::format("{:.3f}", row.cpu_seconds) : "-",
             row.verdict, row.note);
  std::fflush(stdout);
  rows_.push_back(ToJson(row));
  failed_ = failed_ || row.verdict == kError || row.verdict == kRefused;
}

Status Table::WriteJson(const std::string& path) const {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) {
    return SystemError(errno, fmt::format("cannot write {:?}", path));
  }
  fmt::print(file, "{}\n", rows_.dump(2));
  const bool failed = std::ferror(file) != 0;
  if (std::fclose(file) != 0 || failed) {
    return SystemError(errno, fmt::format("cannot write {:?}", path));
  }
  return {};
}

std::optional<EncodingKind> EncodingCalled(const std::string& method) {
  for (const EncodingKind encoding :
       {EncodingKind::kClap, EncodingKind::kCore, EncodingKind::kTime}) {
    if (method == solver::ToString(encoding)) {
      return encoding;
    }
  }
  return std::nullopt;
}

Row SolveEncoding(const std::string& instance, const ConstraintTrace& trace,
                  bool order_only, EncodingKind encoding,
                  const Settings& settings) {
  solver::Z3Options options;
  options.encoding = encoding;
  options.seconds = settings.seconds;
  options.memory_bytes_max = settings.z3_bytes_max;
  options.sources = solver::SourcesOf(encoding);
  options.order_only = order_only;
  Row row{.instance = instance,
          .method = solver::ToString(encoding),
          .accesses = trace.access_count()};
  row.counts =
      solver::CountFormula(solver::WhatEncodingUses(trace, options), encoding);
  const double cpu_before = CpuSeconds();
  const auto answer = solver::SolveWithZ3(trace, options);
  row.cpu_seconds = CpuSeconds() - cpu_before;
  if (!answer) {
    row.note = answer.error().message;
    return row;
  }
  row.seconds = answer->seconds;
  row.verdict = ToString(answer->verdict);
  row.note = NoteOf(trace, *answer);
  if (answer->verdict == Verdict::kWitness) {
    const Status checked = Check(trace, options, *answer);
    row.verdict = checked ? row.verdict : kRefused;
    row.note = checked ? "checked" : checked.error().message;
  }
  return row;
}

}  // namespace clew::bench
