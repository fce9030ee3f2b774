// Runs a fuzz target's entry point over the files named on the command line, so
// that known inputs are a regression test without libFuzzer. Folders stand for
// every file in them.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

bool RunFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    return false;
  }
  const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()),
                         bytes.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  bool all_read = true;
  size_t inputs = 0;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      all_read = RunFile(argv[i]) && all_read;
      ++inputs;
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      all_read = RunFile(entry.path()) && all_read;
      ++inputs;
    }
  }
  std::printf("%zu inputs\n", inputs);
  return all_read ? 0 : 1;
}
