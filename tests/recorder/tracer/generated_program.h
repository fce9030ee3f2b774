#ifndef CLEW_TESTS_RECORDER_TRACER_GENERATED_PROGRAM_H_
#define CLEW_TESTS_RECORDER_TRACER_GENERATED_PROGRAM_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/recorder/tracer/random_code.h"

namespace clew::tracer {

// A file for programs of random_code.h, one at a time.
class GeneratedProgram {
 public:
  GeneratedProgram() { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }
  GeneratedProgram(const GeneratedProgram&) = delete;
  GeneratedProgram& operator=(const GeneratedProgram&) = delete;
  ~GeneratedProgram() { std::filesystem::remove_all(folder_); }

  // Returns the path of the program of this seed.
  std::string Write(uint64_t seed) const {
    std::string path = folder_ + "/program";
    const std::vector<uint8_t> program = RandomProgram(seed);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(program.data()),
               static_cast<std::streamsize>(program.size()));
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

 private:
  std::string folder_ = testing::TempDir() + "clew_generated_XXXXXX";
};

}  // namespace clew::tracer

#endif  // CLEW_TESTS_RECORDER_TRACER_GENERATED_PROGRAM_H_
