#ifndef CLEW_TESTS_E2E_IMPORTED_HARDWARE_FIXTURE_H_
#define CLEW_TESTS_E2E_IMPORTED_HARDWARE_FIXTURE_H_

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/clew_command.h"

namespace clew::e2e {

// `clew record --source perf --sideband-only` on the kernel that runs us.
// Skipped, with the reason, where that refuses what is needed.
class HardwareFixture : public testing::Test {
 protected:
  // `options` go to every recording.
  explicit HardwareFixture(std::vector<std::string> options = {})
      : options_(std::move(options)) {}
  void SetUp() override;

  // Words for Clew.
  std::vector<std::string> Record(const std::string& bundle,
                                  const std::vector<std::string>& more) const;
  // What `clew info --json` says.
  static nlohmann::json Info(const std::string& bundle);

  // Records `target` for a second, and on a busy machine anew for longer, until
  // the bundle `has_enough`; false if even minutes are not enough.
  bool RecordUntil(const std::string& bundle, std::vector<std::string> target,
                   const std::function<bool()>& has_enough) const;

  Scratch scratch_;

 private:
  const std::vector<std::string> options_;
};

// The JSON document among what a command printed.
nlohmann::json JsonIn(const std::string& text);

// A millisecond.
void Nap();

}  // namespace clew::e2e

#endif  // CLEW_TESTS_E2E_IMPORTED_HARDWARE_FIXTURE_H_
