#include "bench/encodings_generated.h"

#include <fmt/format.h>

#include "bench/cpu_time.h"
#include "constraints/verdict.h"
#include "solver/portfolio.h"
#include "tests/support/toy_programs.h"

namespace clew::bench {
namespace {

using constraints::Verdict;
using test::Toy;

struct Instance {
  std::string name;
  test::ToyOptions options;
};

test::ToyOptions Options(Toy toy, uint32_t iterations, uint32_t evidence_bits) {
  test::ToyOptions options;
  options.toy = toy;
  options.iterations = iterations;
  options.evidence_bits = evidence_bits;
  options.values = toy != Toy::kRacey || evidence_bits > 0;
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
           Options(Toy::kRacey, iterations, bits)});
    }
  }
  instances.push_back({"bbuf", Options(Toy::kBbuf, 5, 0)});
  instances.push_back({"sbuf", Options(Toy::kSbuf, 8, 0)});
  instances.push_back({"pfscan", Options(Toy::kPfscan, 5, 0)});
  return instances;
}

std::vector<Instance> HarderInstances() {
  std::vector<Instance> instances;
  const auto add = [&](Toy toy, uint32_t iterations, uint32_t window,
                       uint32_t bits, bool final_memory, bool final_sum) {
    test::ToyOptions options = Options(toy, iterations, bits);
    options.window = window;
    options.cores = 0;  // a core for each thread: no help from switches
    options.final_memory = final_memory;
    options.final_sum = final_sum;
    instances.push_back(
        {fmt::format("{}-{}{}{}{}{}", test::ToString(toy), iterations,
                     window > 0 ? fmt::format(" g={}", window) : " no time",
                     bits > 0 ? fmt::format(" e={}", bits) : "",
                     final_memory ? " fin" : "", final_sum ? " sum" : ""),
         options});
  };
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

Row SolveDefault(const Instance& instance, const test::ToyTrace& toy,
                 double seconds) {
  solver::PortfolioOptions options;
  options.seconds = seconds;
  Row row{.instance = instance.name,
          .method = "default",
          .accesses = toy.trace.access_count()};
  row.counts = solver::CountFormula(toy.trace, solver::EncodingKind::kReadFrom);
  const double cpu_before = CpuSeconds();
  const auto report = solver::SolveTrace(toy.trace, options);
  row.cpu_seconds = CpuSeconds() - cpu_before;
  if (!report) {
    row.note = report.error().message;
    return row;
  }
  row.seconds = report->seconds;
  row.verdict = ToString(report->verdict);
  const auto& ambiguity = report->ambiguity;
  row.note = report->verdict == Verdict::kWitness && ambiguity
                 ? fmt::format("checked, {}, {} choices, A {:.2f} E {:.2f}",
                               report->engine, report->stats.nodes,
                               ambiguity->per_read_ambiguity(),
                               ambiguity->per_read_evidence())
                 : report->why;
  return row;
}

}  // namespace

void MeasureGenerated(const Settings& settings, Table& table) {
  for (const Instance& instance : Instances(settings.racey)) {
    const test::ToyTrace toy = test::MakeToy(instance.options);
    for (const std::string& method : settings.methods) {
      const auto encoding = EncodingCalled(method);
      table.Add(encoding ? SolveEncoding(instance.name, toy.trace,
                                         !instance.options.values, *encoding,
                                         settings)
                         : SolveDefault(instance, toy, settings.seconds));
    }
  }
}

void MeasureHarder(const Settings& settings, Table& table) {
  for (const Instance& instance : HarderInstances()) {
    const test::ToyTrace toy = test::MakeToy(instance.options);
    table.Add(SolveDefault(instance, toy, settings.seconds));
  }
}

}  // namespace clew::bench
