#include "bench/clew_run.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <fstream>
#include <utility>

#include "bench/cpu_time.h"
#include "common/os/child_process.h"
#include "common/os/fd.h"

namespace clew::bench {

Result<ClewRun> RunClew(const std::string& clew,
                        std::vector<std::string> arguments,
                        const std::string& output_path) {
  const Fd output(open(output_path.c_str(),
                       O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
  const Fd nowhere(open("/dev/null", O_RDWR | O_CLOEXEC));
  const std::string command = arguments.at(0);
  arguments.insert(arguments.begin(), clew);
  arguments.emplace_back("--json");
  const auto start = std::chrono::steady_clock::now();
  CLEW_ASSIGN_OR_RETURN(child,
                        SpawnProgram(arguments, {.input = nowhere.get(),
                                                 .output = output.get(),
                                                 .errors = nowhere.get()}));
  rusage usage = {};
  int status = 0;
  if (wait4(child, &status, 0, &usage) != child) {
    return Unsupported("cannot wait for clew {}", command);
  }
  ClewRun run;
  run.wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  run.cpu_s = CpuSeconds(usage);
  run.rss_mb = static_cast<double>(usage.ru_maxrss) / 1024;
  std::ifstream file(output_path);
  run.printed =
      nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (run.printed.is_discarded()) {
    return Unsupported("clew {} printed no JSON; exit status {}", command,
                       ExitStatusOf(status));
  }
  return run;
}

Status WriteRows(const nlohmann::json& rows, const std::string& path) {
  if (path.empty()) {
    return {};
  }
  std::ofstream file(path);
  file << rows.dump(2) << '\n';
  file.close();
  return file ? Status() : Unsupported("cannot write {:?}", path);
}

}  // namespace clew::bench
