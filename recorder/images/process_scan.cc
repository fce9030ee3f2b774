#include "recorder/images/process_scan.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "common/os/maps_path.h"
#include "common/text/parse_number.h"
#include "common/text/words.h"
#include "recorder/perf/sysfs.h"

namespace clew::recorder {
namespace {

using bundle::PerfMapping;
using bundle::TaskId;

constexpr size_t kBuildIdsMax = 100'000;  // that are kept
constexpr size_t kMappingsMax = 100'000;  // of a process

// The entries of a folder that are numbers.
std::vector<int32_t> NumbersIn(const std::string& folder) {
  std::vector<int32_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()),
                                                closedir);
  while (const dirent* entry = dir ? readdir(dir.get()) : nullptr) {
    if (const auto number = ParseNumber<int32_t>(entry->d_name)) {
      numbers.push_back(*number);
    }
  }
  std::ranges::sort(numbers);
  return numbers;
}

uint32_t ProtOf(std::string_view permissions) {
  const auto has = [&](size_t at, char c) {
    return at < permissions.size() && permissions[at] == c;
  };
  return static_cast<uint32_t>((has(0, 'r') ? PROT_READ : 0) |
                               (has(1, 'w') ? PROT_WRITE : 0) |
                               (has(2, 'x') ? PROT_EXEC : 0));
}

// "PPid:" of /proc/PID/status; 0 if the process is gone.
int32_t ParentOf(const std::string& folder) {
  std::ifstream file(folder + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("PPid:\t")) {
      return ParseNumber<int32_t>(std::string_view(line).substr(6)).value_or(0);
    }
  }
  return 0;
}

std::vector<ScannedThread> ReadThreads(const std::string& folder) {
  std::vector<ScannedThread> threads;
  for (const int32_t thread : NumbersIn(folder + "/task")) {
    const auto name =
        perf::FirstLine(fmt::format("{}/task/{}/comm", folder, thread));
    if (name) {  // else it is gone
      threads.push_back({.thread = thread, .name = *name});
    }
  }
  return threads;
}

Status AddProcess(const ScannedProcess& of, PerfCapture& capture) {
  const TaskId main{.process = of.process, .thread = Tid(of.process)};
  const TaskId parent{.process = of.parent, .thread = Tid(of.parent)};
  for (const ScannedThread& thread : of.threads) {
    CLEW_RETURN_IF_ERROR(capture.AddThread(
        {.process = of.process, .thread = Tid(thread.thread)},
        thread.thread == of.process ? parent : main, thread.name));
  }
  for (const PerfMapping& mapping : of.mappings) {
    CLEW_RETURN_IF_ERROR(capture.AddMapping(main, mapping));
  }
  return {};
}

}  // namespace

// A line of /proc/PID/maps (proc(5)): "start-end perms offset dev inode path".
struct ProcessScanner::MapsLine {
  MappedFileName name;
  PerfMapping mapping;
  bool executable = false;
  bool is_file = false;
};

std::optional<ProcessScanner::MapsLine> ProcessScanner::ParseMapsLine(
    std::string_view line) {
  MapsLine parsed;
  const std::string_view range = TakeWord(line);
  const std::string_view permissions = TakeWord(line);
  const auto offset = ParseNumber<uint64_t>(TakeWord(line), 16);
  parsed.name.range = range;
  parsed.name.device = TakeWord(line);
  parsed.name.inode = ParseNumber<uint64_t>(TakeWord(line)).value_or(0);
  const size_t dash = std::min(range.find('-'), range.size());
  const uint64_t begin =
      ParseNumber<uint64_t>(range.substr(0, dash), 16).value_or(0);
  const uint64_t end =
      ParseNumber<uint64_t>(range.substr(std::min(dash + 1, range.size())), 16)
          .value_or(0);
  if (!offset || end <= begin) {
    return std::nullopt;
  }
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  PerfMapping& mapping = parsed.mapping;
  mapping.addr = TraceeAddr(begin);
  mapping.size_bytes = end - begin;
  mapping.file_offset = *offset;
  mapping.prot = ProtOf(permissions);
  mapping.flags = permissions.ends_with('s') ? MAP_SHARED : MAP_PRIVATE;
  parsed.executable = (mapping.prot & PROT_EXEC) != 0;
  parsed.is_file = line.starts_with('/');
  parsed.name.path = PathOfMapping(line, parsed.name.inode);
  mapping.path = line.empty() ? "//anon" : parsed.name.path;
  return parsed;
}

std::vector<std::byte> ProcessScanner::BuildIdOf(int32_t process,
                                                 const MapsLine& line,
                                                 Opened* opened) {
  const FileKey key(line.name.device, line.name.inode, line.name.path);
  const auto known = build_ids_.find(key);
  if (known != build_ids_.end() && opened == nullptr) {
    return known->second;
  }
  auto file = ImageFile::OfMapping(proc_, process, line.name);
  std::vector<std::byte> id;
  if (file) {
    id = file->BuildId();
  }
  if (!IsDeleted(line.name.path) && build_ids_.size() < kBuildIdsMax) {
    build_ids_.emplace(key, id);
  }
  if (file && opened != nullptr && opened->size() < HeldImages::kFilesMax) {
    opened->emplace_back(line.name.path, std::move(*file));
  }
  return id;
}

std::vector<PerfMapping> ProcessScanner::MappingsOf(int32_t process,
                                                    Opened* opened) {
  std::vector<PerfMapping> mappings;
  std::ifstream maps(fmt::format("{}/{}/maps", proc_, process));
  size_t files = 0;
  size_t path_bytes = 0;
  for (std::string text; mappings.size() < kMappingsMax &&
                         path_bytes < kPathBytesMax &&
                         std::getline(maps, text);) {
    auto line = ParseMapsLine(text);
    if (line && line->executable) {
      if (line->is_file && ++files <= kFilesMax) {
        line->mapping.build_id = BuildIdOf(process, *line, opened);
      }
      path_bytes += line->mapping.path.size();
      mappings.push_back(std::move(line->mapping));
    }
  }
  return mappings;
}

void ProcessScanner::Hold(int32_t process, const FileUser& before,
                          Opened opened, HeldImages& held) const {
  const auto user = FileUserOf(proc_, process);
  if (!user || *user != before) {
    return;
  }
  for (auto& [path, file] : opened) {
    if (file.IsReadableBy(*user)) {
      held.Add(path, std::move(file));
    }
  }
}

std::vector<ScannedProcess> ProcessScanner::Scan(
    const std::vector<int32_t>& processes, HeldImages* held) {
  std::vector<ScannedProcess> list;
  for (const int32_t process : processes) {
    const std::string folder = fmt::format("{}/{}", proc_, process);
    const auto user = held == nullptr ? FileUser() : FileUserOf(proc_, process);
    Opened opened;
    ScannedProcess of{
        .process = process,
        .parent = ParentOf(folder),
        .threads = ReadThreads(folder),
        .mappings =
            MappingsOf(process, held != nullptr && user ? &opened : nullptr)};
    if (held != nullptr && user) {
      Hold(process, *user, std::move(opened), *held);
    }
    if (!of.threads.empty()) {
      list.push_back(std::move(of));
    }
  }
  return list;
}

Result<std::vector<int32_t>> ThreadsOf(const std::string& proc,
                                       int32_t process) {
  auto threads = NumbersIn(fmt::format("{}/{}/task", proc, process));
  if (threads.empty()) {
    return InvalidArgument("there is no process {}; 'ps -e' lists them",
                           process);
  }
  return threads;
}

std::vector<int32_t> AllProcesses(const std::string& proc) {
  return NumbersIn(proc);
}

Status AddProcesses(const std::vector<ScannedProcess>& processes,
                    PerfCapture& capture) {
  for (const ScannedProcess& process : processes) {
    CLEW_RETURN_IF_ERROR(AddProcess(process, capture));
  }
  return {};
}

}  // namespace clew::recorder
