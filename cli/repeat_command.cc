#include "cli/repeat_command.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "common/text/shell_quote.h"

namespace clew::cli {

std::string RepeatCommand(const std::string& bundle) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path absolute = fs::absolute(bundle, error).lexically_normal();
  return ShellQuote(std::vector<std::string>{
      fs::read_symlink("/proc/self/exe", error).string(), "record", "--repeat",
      absolute.string(), "-o", "repeat.clew"});
}

}  // namespace clew::cli
