// What share of the instructions in the code of Debian's packages the machine
// can execute: those that its decoder decodes and that have a handler, or that
// raise #UD by intent (UD2). Counted by occurrence in the file, not in a run.
//
//   build/bench/bench_forms [FILE]... [--json FILE]
//
// Without a FILE, programs and libraries of Debian: those that are installed.
//
// Code is what .eh_frame describes (of the sections of code, the column "of
// text" says how much that is), and in each of its functions, one instruction
// after another. A form is a mnemonic and an encoding (legacy, VEX, EVEX), as
// Zydis names them, and covered where each of its occurrences is. "lengths"
// are instructions that the machine's decoder decodes and for which Zydis has
// another length, expected 0 (else the exit code is 1); "no insn" are bytes
// with which neither has one begin; they are in no share.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bench/clew_run.h"
#include "bench/forms/code.h"
#include "bench/forms/sweep.h"
#include "common/result.h"
#include "common/text/path_names.h"

namespace clew::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolders[] = {"/usr/bin", "/usr/sbin",
                                    "/usr/lib/x86_64-linux-gnu"};
constexpr const char* kNames[] = {"libc.so.6",
                                  "libm.so.6",
                                  "ld-linux-x86-64.so.2",
                                  "libstdc++.so.6",
                                  "libcrypto.so.3",
                                  "libz.so.1",
                                  "libsqlite3.so.0",
                                  "python3.11",
                                  "nginx",
                                  "mariadbd",
                                  "memcached",
                                  "redis-server",
                                  "zstd"};

// What one file has.
struct Row {
  std::string path;
  uint64_t code_bytes = 0;
  uint64_t executable_bytes = 0;
  Tally tally;

  std::string name() const { return BaseName(path); }
};

// A form that has uncovered occurrences, in all files.
struct Gap {
  InsnForm form;
  uint64_t count = 0;
  std::string_view isa_set;
  std::string file;  // of the example
  Occurrences example;
};

double Percent(uint64_t part, uint64_t whole) {
  return whole == 0
             ? 0
             : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

Result<Row> Measure(const std::string& path, Sweeper& sweeper) {
  CLEW_ASSIGN_OR_RETURN(file, CodeFile::Open(path));
  Row row;
  row.path = path;
  row.executable_bytes = file.executable_bytes();
  for (const CodeRange& range : file.ranges()) {
    row.code_bytes += range.bytes.size();
    sweeper.Sweep(range, row.tally);
  }
  return row;
}

void PrintHeading() {
  fmt::print("{:22} {:>10} {:>8} {:>9} {:>6} {:>8} {:>8} {:>8} {:>7}\n", "file",
             "code bytes", "of text", "insns", "forms", "covered", "share",
             "lengths", "no insn");
  std::fflush(stdout);
}

void PrintRow(const Row& row) {
  const Tally& tally = row.tally;
  fmt::print("{:22} {:10} {:7.1f}% {:9} {:6} {:8} {:7.3f}% {:8} {:7}\n",
             row.name(), row.code_bytes,
             Percent(row.code_bytes, row.executable_bytes), tally.insns,
             tally.forms.size(), tally.forms_covered(),
             Percent(tally.insns_covered, tally.insns),
             tally.lengths_differing.count, tally.no_insn.count);
  std::fflush(stdout);
}

// Adds `from`; whose example stays is of no matter.
void Merge(const Occurrences& from, Occurrences& into) {
  if (into.count == 0) {
    into = from;
  } else {
    into.count += from.count;
  }
}

Row TotalOf(const std::vector<Row>& rows) {
  Row total;
  total.path = "all";
  for (const Row& row : rows) {
    total.code_bytes += row.code_bytes;
    total.executable_bytes += row.executable_bytes;
    total.tally.insns += row.tally.insns;
    total.tally.insns_covered += row.tally.insns_covered;
    Merge(row.tally.lengths_differing, total.tally.lengths_differing);
    Merge(row.tally.no_insn, total.tally.no_insn);
    for (const auto& [form, counts] : row.tally.forms) {
      FormCounts& sum = total.tally.forms[form];
      sum.covered += counts.covered;
      Merge(counts.uncovered, sum.uncovered);
    }
  }
  return total;
}

// Most frequent first.
std::vector<Gap> GapsOf(const std::vector<Row>& rows) {
  std::map<InsnForm, Gap> by_form;
  for (const Row& row : rows) {
    for (const auto& [form, counts] : row.tally.forms) {
      const uint64_t count = counts.uncovered.count;
      if (count != 0) {
        Gap& gap = by_form
                       .try_emplace(form, Gap{form, 0, counts.isa_set,
                                              row.name(), counts.uncovered})
                       .first->second;
        gap.count += count;
      }
    }
  }
  std::vector<Gap> gaps;
  gaps.reserve(by_form.size());
  for (const auto& [form, gap] : by_form) {
    gaps.push_back(gap);
  }
  std::ranges::stable_sort(gaps, std::ranges::greater(), &Gap::count);
  return gaps;
}

void PrintGaps(const std::vector<Gap>& gaps) {
  if (gaps.empty()) {
    fmt::print("\nnothing is uncovered\n");
    return;
  }
  fmt::print("\n{:16} {:8} {:>7}  {:20} {}\n", "uncovered", "encoding", "count",
             "set", "the first one");
  for (const Gap& gap : gaps) {
    fmt::print("{:16} {:8} {:7}  {:20} {} at {:#x} in {}\n", gap.form.mnemonic,
               gap.form.encoding, gap.count, gap.isa_set, gap.example.bytes,
               gap.example.addr, gap.file);
  }
}

void PrintFirst(const char* what, const Row& row, const Occurrences& all) {
  if (all.count != 0) {
    fmt::print("{}: {} in {}, the first one {} at {:#x}\n", what, all.count,
               row.name(), all.bytes, all.addr);
  }
}

nlohmann::json JsonOf(const Occurrences& all) {
  return {{"count", all.count}, {"address", all.addr}, {"bytes", all.bytes}};
}

nlohmann::json JsonOf(const Row& row) {
  nlohmann::json uncovered = nlohmann::json::array();
  for (const auto& [form, counts] : row.tally.forms) {
    if (counts.uncovered.count != 0) {
      nlohmann::json gap = JsonOf(counts.uncovered);
      gap["mnemonic"] = form.mnemonic;
      gap["encoding"] = form.encoding;
      gap["set"] = counts.isa_set;
      uncovered.push_back(std::move(gap));
    }
  }
  return {{"file", row.path},
          {"code_bytes", row.code_bytes},
          {"executable_bytes", row.executable_bytes},
          {"instructions", row.tally.insns},
          {"instructions_covered", row.tally.insns_covered},
          {"forms", row.tally.forms.size()},
          {"forms_covered", row.tally.forms_covered()},
          {"share_percent", Percent(row.tally.insns_covered, row.tally.insns)},
          {"lengths_differing", JsonOf(row.tally.lengths_differing)},
          {"no_instruction_bytes", JsonOf(row.tally.no_insn)},
          {"uncovered", std::move(uncovered)}};
}

// Where those of kNames are that this host has.
std::vector<std::string> FindInstalled() {
  std::vector<std::string> paths;
  paths.reserve(std::size(kNames));
  for (const char* name : kNames) {
    const auto* const folder =
        std::ranges::find_if(kFolders, [&](const char* candidate) {
          std::error_code error;
          return fs::is_regular_file(fs::path(candidate) / name, error);
        });
    if (folder != std::end(kFolders)) {
      paths.push_back(fmt::format("{}/{}", *folder, name));
    } else {
      fmt::print("{:22} not installed\n", name);
    }
  }
  return paths;
}

void PrintDetails(const std::vector<Row>& rows, const Sweeper& sweeper) {
  PrintGaps(GapsOf(rows));
  for (const Row& row : rows) {
    PrintFirst("lengths differ", row, row.tally.lengths_differing);
    PrintFirst("bytes without an instruction", row, row.tally.no_insn);
  }
  const x86::FeatureSet absent = x86::kCarriedOut.Without(sweeper.features());
  if (!absent.empty()) {
    fmt::print("this CPU has no {}: their instructions are uncovered\n",
               x86::NamesOf(absent));
  }
}

// A file that cannot be read is a row that says so. Returns the exit code.
Result<int> RunAll(const std::vector<std::string>& paths,
                   const std::string& json) {
  Sweeper sweeper;
  std::vector<Row> rows;
  rows.reserve(paths.size());
  nlohmann::json json_rows = nlohmann::json::array();
  int exit_code = kExitOk;
  PrintHeading();
  for (const std::string& path : paths) {
    auto row = Measure(path, sweeper);
    if (!row) {
      fmt::print("{:22} error: {}\n", BaseName(path), row.error().message);
      json_rows.push_back({{"file", path}, {"error", row.error().message}});
      exit_code = ExitCodeOf(row.error().code);
      continue;
    }
    PrintRow(*row);
    json_rows.push_back(JsonOf(*row));
    rows.push_back(*std::move(row));
  }
  const Row total = TotalOf(rows);
  PrintRow(total);
  PrintDetails(rows, sweeper);
  CLEW_RETURN_IF_ERROR(WriteRows(json_rows, json));
  return total.tally.lengths_differing.count != 0 ? kExitFinding : exit_code;
}

int Main(int argc, char** argv) {
  CLI::App app("what share of the instructions in files the machine executes");
  std::vector<std::string> paths;
  std::string json;
  app.add_option("files", paths,
                 "programs and libraries (default: those of a list that are "
                 "installed)");
  app.add_option("--json", json, "write the rows there, too");
  CLI11_PARSE(app, argc, argv);
  const auto exit_code = RunAll(paths.empty() ? FindInstalled() : paths, json);
  if (!exit_code) {
    fmt::print(stderr, "bench_forms: {}\n", exit_code.error().message);
    return ExitCodeOf(exit_code.error().code);
  }
  return *exit_code;
}

}  // namespace
}  // namespace clew::bench

int main(int argc, char** argv) { return clew::bench::Main(argc, argv); }
