#include "tests/e2e/imported/import_command.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "common/result.h"
#include "tests/e2e/clew_command.h"
#include "tests/support/read_text.h"

namespace clew::e2e {

nlohmann::json Import(const std::string& input, const std::string& bundle,
                      const std::vector<std::string>& more) {
  std::vector<std::string> command = {"import", input, "-o", bundle, "--json"};
  command.insert(command.end(), more.begin(), more.end());
  const std::string file = bundle + ".json";
  const ProgramOutput output = ClewInto(file, command);
  EXPECT_EQ(output.exit_status, kExitOk) << output.text;
  return nlohmann::json::parse(test::ReadText(file), nullptr,
                               /*allow_exceptions=*/false);
}

nlohmann::json ImageOf(const nlohmann::json& report, const std::string& name) {
  for (const nlohmann::json& image : report["images"]) {
    const std::filesystem::path path = image["path"].get<std::string>();
    if (path.filename() == name) {
      return image;
    }
  }
  return {};
}

}  // namespace clew::e2e
