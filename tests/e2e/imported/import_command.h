#ifndef CLEW_TESTS_E2E_IMPORTED_IMPORT_COMMAND_H_
#define CLEW_TESTS_E2E_IMPORTED_IMPORT_COMMAND_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace clew::e2e {

// `clew import <input> -o <bundle> --json <more>`, which has to succeed, as a
// gtest expectation. Returns its report, which is also in <bundle>.json.
nlohmann::json Import(const std::string& input, const std::string& bundle,
                      const std::vector<std::string>& more = {});

// What the report says about the image with that base name.
nlohmann::json ImageOf(const nlohmann::json& report, const std::string& name);

}  // namespace clew::e2e

#endif  // CLEW_TESTS_E2E_IMPORTED_IMPORT_COMMAND_H_
