// Encodings side by side: size of the formula and time to solve it, for CLAP's,
// H3's with core order, the same with time, and the default portfolio.
//
// The instances are small programs run under a random scheduler and written
// down as constraint traces: 4 threads on 2 virtual cores, times known to a
// window of 16 accesses. racey has no data-dependent branch; as in the
// published figures addresses are given and values are free ("racey"), or the
// 6 bits of the hash that choose the address are evidence at every read
// ("racey e=6"). Order formulas leave values out in the former and have them
// in the latter. clap and core do not use the times, as published.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "solver/checker.h"
#include "solver/solve.h"
#include "solver/z3_backend.h"
#include "tests/support/toy_programs.h"

namespace clew {
namespace {

using solver::Encoding;
using solver::Verdict;

struct Instance {
  std::string name;
  testing::ToyOptions options;
};

testing::ToyOptions Options(testing::Toy toy, uint32_t iterations,
                            uint32_t evidence_bits) {
  testing::ToyOptions options;
  options.toy = toy;
  options.iterations = iterations;
  options.evidence_bits = evidence_bits;
  options.values = toy != testing::Toy::kRacey || evidence_bits > 0;
  options.window = 16;
  options.cores = 2;
  return options;
}

std::vector<Instance> Instances(const std::vector<uint32_t>& racey) {
  std::vector<Instance> instances;
  for (uint32_t bits : {0u, 6u}) {
    for (uint32_t iterations : racey) {
      instances.push_back(
          {fmt::format("racey-{}{}", iterations, bits > 0 ? " e=6" : ""),
           Options(testing::Toy::kRacey, iterations, bits)});
    }
  }
  instances.push_back({"bbuf", Options(testing::Toy::kBbuf, 5, 0)});
  instances.push_back({"sbuf", Options(testing::Toy::kSbuf, 8, 0)});
  instances.push_back({"pfscan", Options(testing::Toy::kPfscan, 5, 0)});
  return instances;
}

// Harder for the portfolio: coarse clocks or none, evidence only at the end.
std::vector<Instance> MoreInstances() {
  std::vector<Instance> instances;
  const auto add = [&](testing::Toy toy, uint32_t iterations, uint32_t window,
                       uint32_t bits, bool final_memory, bool final_sum) {
    testing::ToyOptions options = Options(toy, iterations, bits);
    options.window = window;
    options.cores = 0;  // a core for each thread: no help from switches
    options.final_memory = final_memory;
    options.final_sum = final_sum;
    instances.push_back(
        {fmt::format("{}-{}{}{}{}{}", testing::ToString(toy), iterations,
                     window > 0 ? fmt::format(" g={}", window) : " no time",
                     bits > 0 ? fmt::format(" e={}", bits) : "",
                     final_memory ? " fin" : "", final_sum ? " sum" : ""),
         options});
  };
  using testing::Toy;
  add(Toy::kRacey, 1500, 85, 0, false, false);
  add(Toy::kRacey, 1500, 85, 6, false, false);
  add(Toy::kRacey, 1500, 85, 2, false, false);
  add(Toy::kRacey, 1500, 85, 1, false, false);
  add(Toy::kRacey, 100, 0, 6, false, false);
  for (uint32_t window : {85u, 0u}) {
    add(Toy::kBbuf, 500, window, 0, false, false);
    add(Toy::kSbuf, 500, window, 0, false, false);
    add(Toy::kPfscan, 500, window, 0, false, false);
    add(Toy::kSpin, 500, window, 0, false, false);
    add(Toy::kCounter, 100, window, 0, false, true);
    add(Toy::kBank, 100, window, 0, false, true);
  }
  add(Toy::kCounter, 100, 16, 0, true, false);
  add(Toy::kCounter, 500, 16, 0, true, false);
  add(Toy::kBank, 25, 16, 0, true, false);
  add(Toy::kBank, 100, 16, 0, true, false);
  add(Toy::kBank, 100, 85, 0, true, false);
  return instances;
}

struct Row {
  std::string instance;
  std::string method;
  uint64_t accesses = 0;
  solver::FormulaCounts counts;
  std::string verdict;
  double seconds = 0;
  std::string note;
};

Row SolveEncoding(const Instance& instance, const testing::ToyTrace& toy,
                  Encoding encoding, double seconds) {
  solver::Z3Options options;
  options.encoding = encoding;
  options.seconds = seconds;
  options.sources = solver::SourcesOf(encoding);
  options.order_only = !instance.options.values;
  Row row{instance.name,
          solver::ToString(encoding),
          toy.trace.access_count(),
          solver::CountFormula(toy.trace, encoding),
          "error",
          0,
          ""};
  const auto answer = solver::SolveWithZ3(toy.trace, options);
  if (!answer) {
    row.note = answer.error().message;
    return row;
  }
  row.seconds = answer->seconds;
  row.verdict = solver::ToString(answer->verdict);
  row.note = answer->why;
  if (answer->verdict == Verdict::kWitness) {
    const Status checked = solver::CheckOrder(
        solver::WhatEncodingUses(toy.trace, options), answer->order);
    row.note = checked ? "checked" : "REFUSED: " + checked.error().message;
  }
  return row;
}

Row SolveDefault(const Instance& instance, const testing::ToyTrace& toy,
                 double seconds) {
  solver::SolveOptions options;
  options.seconds = seconds;
  Row row{instance.name,
          "default",
          toy.trace.access_count(),
          solver::CountFormula(toy.trace, Encoding::kReadFrom),
          "error",
          0,
          ""};
  const auto report = solver::SolveTrace(toy.trace, options);
  if (!report) {
    row.note = report.error().message;
    return row;
  }
  row.seconds = report->seconds;
  row.verdict = solver::ToString(report->verdict);
  row.note = report->verdict == Verdict::kWitness
                 ? fmt::format("checked, {}, {} choices, A {:.2f} E {:.2f}",
                               report->engine, report->stats.nodes,
                               report->ambiguity->per_read_ambiguity(),
                               report->ambiguity->per_read_evidence())
                 : report->why;
  return row;
}

void Print(const Row& row) {
  fmt::print("{:<22} {:<8} {:>8} {:>9} {:>12} {:>12} {:>9.3f} {:<8} {}\n",
             row.instance, row.method, row.accesses, row.counts.variables,
             row.counts.constraints, row.counts.read_write, row.seconds,
             row.verdict, row.note);
  std::fflush(stdout);
}

nlohmann::json ToJson(const Row& row) {
  return {{"instance", row.instance},
          {"method", row.method},
          {"accesses", row.accesses},
          {"variables", row.counts.variables},
          {"constraints", row.counts.constraints},
          {"read_write_constraints", row.counts.read_write},
          {"seconds", row.seconds},
          {"verdict", row.verdict},
          {"note", row.note}};
}

int Run(const std::vector<Instance>& instances, double seconds,
        const std::vector<std::string>& methods, const std::string& json) {
  fmt::print("{:<22} {:<8} {:>8} {:>9} {:>12} {:>12} {:>9} {:<8} {}\n",
             "instance", "method", "accesses", "variables", "constraints",
             "read-write", "time s", "verdict", "note");
  nlohmann::json rows = nlohmann::json::array();
  for (const Instance& instance : instances) {
    const testing::ToyTrace toy = testing::MakeToy(instance.options);
    for (const std::string& method : methods) {
      Row row;
      if (method == "default") {
        row = SolveDefault(instance, toy, seconds);
      } else {
        const Encoding encoding = method == "clap"   ? Encoding::kClap
                                  : method == "core" ? Encoding::kCore
                                                     : Encoding::kTime;
        row = SolveEncoding(instance, toy, encoding, seconds);
      }
      Print(row);
      rows.push_back(ToJson(row));
    }
  }
  if (json.empty()) {
    return kExitOk;
  }
  std::FILE* file = std::fopen(json.c_str(), "w");
  if (file == nullptr) {
    fmt::print(stderr, "cannot write {:?}\n", json);
    return kExitEnvironment;
  }
  fmt::print(file, "{}\n", rows.dump(2));
  return std::fclose(file) == 0 ? kExitOk : kExitEnvironment;
}

}  // namespace
}  // namespace clew

int main(int argc, char** argv) {
  CLI::App app("size and solving time of encodings, side by side");
  double seconds = 60;
  std::string json;
  std::vector<uint32_t> racey = {100, 500, 1000, 1500};
  std::vector<std::string> methods = {"clap", "core", "time", "default"};
  app.add_option("--limit", seconds, "seconds for each, default 60");
  app.add_option("--json", json, "also write the table to this file");
  app.add_option("--racey", racey, "iterations of the racey rows");
  app.add_option("--methods", methods, "clap core time default")
      ->check(CLI::IsMember({"clap", "core", "time", "default"}));
  bool more = false;
  app.add_flag("--more", more,
               "other instances, harder for the portfolio, and only that");
  CLI11_PARSE(app, argc, argv);
  return more ? clew::Run(clew::MoreInstances(), seconds, {"default"}, json)
              : clew::Run(clew::Instances(racey), seconds, methods, json);
}
