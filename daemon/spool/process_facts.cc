#include "daemon/spool/process_facts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>

#include "common/os/maps_path.h"
#include "common/os/process_state.h"
#include "common/text/path_names.h"

namespace clew::daemon {
namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string ProgramOf(const std::string& folder) {
  std::array<char, 4096> path = {};
  const ssize_t size =
      readlink((folder + "/exe").c_str(), path.data(), path.size());
  if (size <= 0) {
    return FirstLine(folder + "/comm");
  }
  return BaseName(WithoutDeleted({path.data(), static_cast<size_t>(size)}));
}

// proc(5), /proc/PID/status: "VmRSS:	  123 kB", "Uid:	real
// effective	...".
void ReadStatus(const std::string& folder, ProcessFacts* facts) {
  std::ifstream file(folder + "/status");
  std::string line;
  while (std::getline(file, line)) {
    const char* value = line.c_str() + line.find(':') + 1;
    if (line.starts_with("VmRSS:") || line.starts_with("VmSwap:")) {
      facts->memory_bytes += strtoull(value, nullptr, 10) * 1024;
    } else if (line.starts_with("Uid:")) {
      facts->user = static_cast<uint32_t>(strtoul(value, nullptr, 10));
    }
  }
}

}  // namespace

std::string UnitOfCgroup(const std::string& path) {
  // The innermost component that is a service or scope.
  size_t end = path.size();
  while (end != 0) {
    const size_t slash = path.rfind('/', end - 1);
    const size_t begin = slash == std::string::npos ? 0 : slash + 1;
    const std::string part = path.substr(begin, end - begin);
    if (part.ends_with(".service") || part.ends_with(".scope")) {
      return part;
    }
    end = slash == std::string::npos ? 0 : slash;
  }
  return "";
}

ProcessFacts ReadProcessFacts(const std::string& proc, int32_t process) {
  const std::string folder = fmt::format("{}/{}", proc, process);
  ProcessFacts facts;
  facts.exists = access(folder.c_str(), F_OK) == 0;
  if (!facts.exists) {
    return facts;
  }
  facts.program = ProgramOf(folder);
  ReadStatus(folder, &facts);
  facts.unit = UnitOfCgroup(FirstLine(folder + "/cgroup"));
  return facts;
}

std::vector<int32_t> LivingChildren(const std::string& proc, int32_t process) {
  std::ifstream list(fmt::format("{0}/{1}/task/{1}/children", proc, process));
  std::vector<int32_t> found;
  int32_t child = 0;
  while (list >> child) {
    const char state = ProcessState(fmt::format("{}/{}/stat", proc, child));
    if (state != 0 && state != 'Z') {
      found.push_back(child);
    }
  }
  return found;
}

}  // namespace clew::daemon
