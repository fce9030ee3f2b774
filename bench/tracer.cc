// What the tracer costs: CPU and wall time of programs in it and natively, by
// turns, with what their logs had. The recorder's side reads the logs and drops
// them, on another CPU. With --clew, also what `clew record` costs in all, in
// each of its ways: times the program's own CPU and wall time, and the bundle.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "bench/cpu_time.h"
#include "common/os/exec_arguments.h"
#include "recorder/tracer/start.h"

namespace clew {
namespace {

struct Subject {
  std::string name;
  std::string command;  // words; {} is a text of some MB
  bool has_threads = false;
};

const std::vector<Subject>& Subjects() {
  static const std::vector<Subject> subjects = {
      {"true", "/usr/bin/true"},
      {"gzip", "/usr/bin/gzip -6 -c {}"},
      {"xz", "/usr/bin/xz -1 -T1 -c {}"},
      {"bzip2", "/usr/bin/bzip2 -c {}"},
      {"sha512sum", "/usr/bin/sha512sum {}"},
      {"sort", "/usr/bin/sort --parallel=1 {}"},
      {"perl",
       "/usr/bin/perl -ne $n{$_}++for(split);END{print(scalar(keys(%n)))} {}"},
      {"python3",
       "/usr/bin/python3 -I -S -c "
       "d={i:str(i)for(i)in(range(300000))};print(sum(map(len,d.values())))"},
      {"xz -T2", "/usr/bin/xz -1 -T2 --block-size=1000000 -c {}", true},
      {"pbzip2", "/usr/bin/pbzip2 -p2 -b1 -c {}", true},
      {"zstd -T2", "/usr/bin/zstd -9 -T2 -B1000000 -c {}", true},
  };
  return subjects;
}

std::vector<std::string> Words(const Subject& subject,
                               const std::string& text) {
  std::istringstream stream(subject.command);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(word == "{}" ? text : word);
  }
  return words;
}

struct Cost {
  double cpu_s = 1e9;
  double wall_s = 1e9;
  uint64_t records = 0;
  uint32_t fragments = 0;

  void Take(const Cost& other) {
    cpu_s = std::min(cpu_s, other.cpu_s);
    wall_s = std::min(wall_s, other.wall_s);
    records = other.records;
    fragments = other.fragments;
  }
};

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Whether it has ended, and if so what it took.
std::optional<double> CpuIfEnded(int32_t process, int options) {
  int status = 0;
  rusage usage = {};
  if (wait4(process, &status, options, &usage) != process) {
    return std::nullopt;
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fmt::print(stderr, "a program ended with status {:#x}\n", status);
    std::exit(1);
  }
  return CpuSeconds(usage);
}

// In the child: output is dropped.
bool DropOutput() {
  const int null = open("/dev/null", O_WRONLY);
  return null >= 0 && dup2(null, 1) == 1 && dup2(null, 2) == 2;
}

Cost RunNatively(const std::vector<std::string>& command) {
  const Clock::time_point begin = Clock::now();
  const std::vector<char*> arguments = ExecArguments(command);
  const int32_t child = fork();
  if (child == 0) {
    DropOutput();
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  Cost cost;
  cost.cpu_s = CpuIfEnded(child, 0).value_or(0);
  cost.wall_s = SecondsSince(begin);
  return cost;
}

template <class T>
T OrExit(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "{}\n", result.error().message);
    std::exit(1);
  }
  return std::move(*result);
}

uint64_t Drain(tracer::ThreadSlot& slot) {
  const uint32_t read = slot.batches_read.load();
  const uint32_t written = slot.batches_written.load();
  if (read == written) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    return 0;
  }
  tracer::SharedMemory::FreeBatches(slot, written);
  return uint64_t{written - read} * tracer::kBatchRecords;
}

// A way to record, by the options of `clew record`.
struct Way {
  const char* name;
  std::vector<std::string> options;
};

const std::vector<Way>& Ways() {
  static const std::vector<Way> ways = {
      {"free", {"--source", "tracer", "--free"}},
      {"turns", {"--source", "tracer"}},
      {"qemu", {"--source", "qemu"}}};
  return ways;
}

uint64_t BytesIn(const std::filesystem::path& folder) {
  uint64_t bytes = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(folder)) {
    bytes += entry.is_regular_file() ? entry.file_size() : 0;
  }
  return bytes;
}

// What all of it costs, with the recorder. `bundle` is left behind.
Cost RunRecorded(const std::string& clew, const Way& way,
                 const std::filesystem::path& bundle,
                 const std::vector<std::string>& command) {
  std::filesystem::remove_all(bundle);
  std::vector<std::string> words = {clew, "record", "-o", bundle};
  words.insert(words.end(), way.options.begin(), way.options.end());
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return RunNatively(words);
}

Cost RunTraced(const std::vector<std::string>& command) {
  const Clock::time_point begin = Clock::now();
  TraceeLaunch launch;
  launch.program = command[0];
  launch.arguments = command;
  launch.environment = {"LC_ALL=C", "PATH=/usr/bin:/bin"};
  launch.host_cpu = std::nullopt;
  launch.prepare = DropOutput;
  auto shared = OrExit(tracer::SharedMemory::Create());
  const int32_t process = OrExit(tracer::StartTraced(launch, shared));
  Cost cost;
  std::optional<double> cpu_s;
  while (!cpu_s) {
    cost.records += Drain(shared.slot(0));
    cpu_s = CpuIfEnded(process, WNOHANG);
  }
  cost.cpu_s = *cpu_s;
  cost.wall_s = SecondsSince(begin);
  cost.fragments = static_cast<uint32_t>(shared.fragments().size());
  return cost;
}

std::string WriteText(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "text";
  std::ofstream file(path);
  uint32_t state = 1;
  for (int line = 0; line < 200'000; ++line) {
    for (int word = 0; word < 5; ++word) {
      state = state * 1664525 + 1013904223;
      file << fmt::format("w{:x} ", (state >> 16) % (1 + (state >> 24)));
    }
    file << '\n';
  }
  return path;
}

struct Settings {
  int runs = 3;
  std::string only = ".*";  // programs
  std::string clew;         // empty: nothing is recorded
  std::vector<std::string> ways;
  std::string json_path;
};

std::vector<Way> WaysOf(const Settings& settings) {
  std::vector<Way> ways = Ways();
  std::erase_if(ways, [&settings](const Way& way) {
    return !settings.ways.empty() &&
           std::ranges::find(settings.ways, way.name) == settings.ways.end();
  });
  return ways;
}

std::vector<Subject> SubjectsOf(const Settings& settings) {
  std::vector<Subject> subjects = Subjects();
  std::erase_if(subjects, [only = std::regex(settings.only)](const auto& each) {
    return !std::regex_search(each.name, only);
  });
  return subjects;
}

void CompareRecordings(const Settings& settings, const std::string& folder,
                       const std::string& text, nlohmann::json& rows) {
  const std::vector<Way> ways = WaysOf(settings);
  const std::filesystem::path bundle =
      std::filesystem::path(folder) / "bundle.clew";
  fmt::print("\n{:<10} {:>8} {:>8}", "program", "native s", "wall s");
  for (const Way& way : ways) {
    fmt::print(" | {:>6} {:>6} {:>7}", way.name, "wall", "MB");
  }
  fmt::print("\n");
  for (const Subject& subject : SubjectsOf(settings)) {
    const std::vector<std::string> command = Words(subject, text);
    Cost native;
    std::vector<Cost> recorded(ways.size());
    std::vector<uint64_t> bytes(ways.size());
    for (int run = 0; run < settings.runs; ++run) {
      native.Take(RunNatively(command));
      for (size_t way = 0; way < ways.size(); ++way) {
        recorded[way].Take(
            RunRecorded(settings.clew, ways[way], bundle, command));
        bytes[way] = BytesIn(bundle);
      }
    }
    nlohmann::json row = {{"recorded", subject.name},
                          {"native_cpu_s", native.cpu_s},
                          {"native_wall_s", native.wall_s}};
    fmt::print("{:<10} {:>8.3f} {:>8.3f}", subject.name, native.cpu_s,
               native.wall_s);
    for (size_t way = 0; way < ways.size(); ++way) {
      const Cost& cost = recorded[way];
      fmt::print(" | {:>6.1f} {:>6.1f} {:>7.1f}", cost.cpu_s / native.cpu_s,
                 cost.wall_s / native.wall_s,
                 static_cast<double>(bytes[way]) / 1e6);
      row[ways[way].name] = {{"cpu_s", cost.cpu_s},
                             {"wall_s", cost.wall_s},
                             {"bundle_bytes", bytes[way]}};
    }
    fmt::print("\n");
    std::fflush(stdout);
    rows.push_back(row);
  }
}

int Main(const Settings& settings) {
  std::string folder = std::filesystem::temp_directory_path() / "clewXXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    fmt::print(stderr, "cannot make a folder\n");
    return 1;
  }
  const std::string text = WriteText(folder);
  nlohmann::json rows = nlohmann::json::array();
  int counted = 0;
  double product = 1;
  fmt::print("{:<10} {:>9} {:>9} {:>6} {:>9} {:>9} {:>6} {:>9} {:>7}\n",
             "program", "native s", "traced s", "times", "wall s", "traced",
             "times", "M records", "fragments");
  for (const Subject& subject : SubjectsOf(settings)) {
    if (subject.has_threads) {
      continue;  // whose logs nobody reads
    }
    const std::vector<std::string> command = Words(subject, text);
    Cost native;
    Cost traced;
    for (int run = 0; run < settings.runs; ++run) {
      native.Take(RunNatively(command));
      traced.Take(RunTraced(command));
    }
    const double times = traced.cpu_s / native.cpu_s;
    const bool counts = subject.name != "true";
    product *= counts ? times : 1;
    counted += counts ? 1 : 0;
    fmt::print(
        "{:<10} {:>9.3f} {:>9.3f} {:>6.2f} {:>9.3f} {:>9.3f} {:>6.2f} {:>9.2f} "
        "{:>7}\n",
        subject.name, native.cpu_s, traced.cpu_s, times, native.wall_s,
        traced.wall_s, traced.wall_s / native.wall_s,
        static_cast<double>(traced.records) / 1e6, traced.fragments);
    std::fflush(stdout);
    rows.push_back({{"program", subject.name},
                    {"native_cpu_s", native.cpu_s},
                    {"traced_cpu_s", traced.cpu_s},
                    {"native_wall_s", native.wall_s},
                    {"traced_wall_s", traced.wall_s},
                    {"records", traced.records},
                    {"fragments", traced.fragments}});
  }
  if (counted > 0) {
    fmt::print("CPU, geometric mean without true: {:.2f} times\n",
               std::pow(product, 1.0 / counted));
  }
  if (!settings.clew.empty()) {
    CompareRecordings(settings, folder, text, rows);
  }
  std::filesystem::remove_all(folder);
  if (!settings.json_path.empty()) {
    std::ofstream(settings.json_path) << rows.dump(2) << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace clew

int main(int argc, char** argv) {
  CLI::App app("Cost of the tracer");
  clew::Settings settings;
  app.add_option("--runs", settings.runs,
                 "runs of each, of which the least counts")
      ->capture_default_str();
  app.add_option("--only", settings.only, "programs whose name matches");
  app.add_option("--clew", settings.clew,
                 "the program clew; then it records, too");
  app.add_option("--ways", settings.ways,
                 "free, turns, qemu: how (all; qemu takes minutes)")
      ->delimiter(',');
  app.add_option("--json", settings.json_path, "write the rows to this file");
  CLI11_PARSE(app, argc, argv);
  return clew::Main(settings);
}
