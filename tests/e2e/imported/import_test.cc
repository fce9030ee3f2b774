// Goal: what `clew import` makes of a perf.data decodes to what the file itself
// does, has perf's figures, and says what it lacks; whatever is wrong with the
// input, the images or the output is refused or listed by name, and no bundle
// is left behind that looks whole.
// Method: the built program on two captures of a real CPU, one per format, and
// on what `perf inject` makes of the first; figures of `perf report -D`, as in
// tests/decoder/perf_data_test.cc. Images: small shared objects made here whose
// build-ids are patched to those of the capture. Truncation and bit flips, seed
// printed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "common/digest.h"
#include "common/result.h"
#include "tests/e2e/clew_command.h"
#include "tests/e2e/imported/import_command.h"
#include "tests/support/read_text.h"
#include "tests/support/write_text.h"

namespace clew::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::ReadText;
using test::WriteText;
using testing::HasSubstr;
using testing::Not;

const std::string kFile = CLEW_TEST_DATA "/perf-intel-pt-4.14/perf.data";
const std::string kPiped = CLEW_TEST_DATA "/perf-intel-pt-4.14/perf.data.piped";
// Of /lib64/libattr.so.1.1.0 in the first capture, as perf buildid-list tells.
constexpr const char* kImageName = "libattr.so.1.1.0";

std::string WithoutBuildIds(const std::string& text) {
  static const std::regex build_id("build-id ([0-9a-f]{40}|unknown)");
  return std::regex_replace(text, build_id, "build-id");
}

// The kernel itself, or a module.
bool IsOfKernel(const json& image) {
  const std::string path = image["path"];
  return path.starts_with("[kernel") || path.ends_with(".ko");
}

class ImportTest : public testing::Test {
 protected:
  std::string Decode(const std::string& input, const std::string& as) {
    const std::string file = scratch_.Path("decoded");
    const ProgramOutput output = ClewInto(file, {"decode", input, "--as", as});
    EXPECT_EQ(output.exit_status, kExitOk) << output.text;
    return ReadText(file);
  }

  template <class Edit>
  void ExpectSameDecoded(const std::string& a, const std::string& b,
                         Edit edit) {
    for (const char* as : {"packets", "slices", "blocks"}) {
      const std::string of_a = Decode(a, as);
      EXPECT_GT(of_a.size(), 100u) << as;
      EXPECT_TRUE(edit(of_a) == edit(Decode(b, as))) << as;
    }
  }

  void ExpectNothingAt(const std::string& bundle) {
    EXPECT_FALSE(fs::exists(bundle));
    EXPECT_FALSE(fs::exists(bundle + ".partial"));
  }

  Scratch scratch_;
};

TEST_F(ImportTest, FileFormatHasPerfsFigures) {
  const json report = Import(kFile, scratch_.Path("a.clew"));
  EXPECT_EQ(report["format"], "file");
  EXPECT_EQ(report["records"]["AUXTRACE"], 2);
  EXPECT_EQ(report["records"]["AUX"], 10);
  EXPECT_EQ(report["records"]["SWITCH_CPU_WIDE"], 152);
  EXPECT_EQ(report["records"]["MMAP"], 56);
  EXPECT_EQ(report["records"]["MMAP2"], 10);
  EXPECT_EQ(report["records"]["COMM"], 3);
  EXPECT_EQ(report["pt_bytes"], 0x2fd0 + 0x21a00);
  EXPECT_EQ(report["cores"], 2);
  EXPECT_EQ(report["host"], "localhost");
  EXPECT_EQ(report["command"].size(), 11u);  // perf record ... echo ...
  EXPECT_EQ(report["command"][9], "echo");
}

TEST_F(ImportTest, PipeFormatHasPerfsFigures) {
  const json report = Import(kPiped, scratch_.Path("a.clew"));
  EXPECT_EQ(report["format"], "pipe");
  EXPECT_EQ(report["records"]["ATTR"], 4);
  EXPECT_EQ(report["records"]["AUXTRACE"], 2);
  EXPECT_EQ(report["records"]["AUX"], 8);
  EXPECT_EQ(report["records"]["SWITCH_CPU_WIDE"], 552);
  EXPECT_EQ(report["records"]["FEATURE"], 12);
}

TEST_F(ImportTest, ABundleDecodesToTheSameAsItsFile) {
  for (const std::string& input : {kFile, kPiped}) {
    const std::string bundle =
        scratch_.Path(fs::path(input).filename().string() + ".clew");
    Import(input, bundle);
    EXPECT_TRUE(ReadText(input) == ReadText(bundle + "/perf.data"));
    ExpectSameDecoded(input, bundle, std::identity());
  }
}

TEST_F(ImportTest, StandardInputGivesTheSameBundle) {
  Import(kPiped, scratch_.Path("a.clew"));
  const std::string b = scratch_.Path("b.clew");
  const ProgramOutput output =
      Shell("cat " + kPiped + " | " + Binary() + " import - -o " + b);
  EXPECT_EQ(output.exit_status, kExitOk) << output.text;
  for (const char* name : {"/perf.data", "/manifest.pb"}) {
    EXPECT_TRUE(ReadText(scratch_.Path("a.clew") + name) == ReadText(b + name))
        << name;
  }
}

// `perf inject` from file to pipe: other offsets, same trace. It writes neither
// the build-ids nor the features of its input, but features of its own host,
// another CPU's errata among them.
TEST_F(ImportTest, TheFileInPipeFormatGivesTheSame) {
  if (Shell("perf inject --help").exit_status != 0) {
    GTEST_SKIP() << "no perf here; install linux-perf";
  }
  const std::string piped = scratch_.Path("piped");
  const ProgramOutput inject =
      Shell("perf inject -i " + kFile + " -o - >" + piped);
  ASSERT_EQ(inject.exit_status, 0) << inject.text;
  const json of_file = Import(kFile, scratch_.Path("a.clew"));
  EXPECT_THAT(Import(piped, scratch_.Path("warned.clew"))["warnings"].dump(),
              HasSubstr("written by perf inject"));
  const json of_pipe =
      Import(piped, scratch_.Path("b.clew"), {"--cpu", "GenuineIntel,6,78,3"});
  EXPECT_TRUE(of_pipe["warnings"].empty()) << of_pipe["warnings"];
  EXPECT_EQ(of_pipe["format"], "pipe");
  for (const char* type : {"AUXTRACE", "AUX", "SWITCH_CPU_WIDE", "MMAP",
                           "MMAP2", "COMM", "EXIT", "ITRACE_START"}) {
    EXPECT_EQ(of_file["records"][type], of_pipe["records"][type]) << type;
  }
  for (const char* field : {"pt_bytes", "cores", "slices", "loss"}) {
    EXPECT_EQ(of_file[field], of_pipe[field]) << field;
  }
  ASSERT_EQ(of_file["images"].size(), of_pipe["images"].size());
  for (size_t i = 0; i < of_file["images"].size(); ++i) {
    EXPECT_EQ(of_file["images"][i]["path"], of_pipe["images"][i]["path"]);
  }
  ExpectSameDecoded(scratch_.Path("a.clew"), scratch_.Path("b.clew"),
                    WithoutBuildIds);
}

TEST_F(ImportTest, InfoNamesSourceHostThreadsAndWhatIsMissing) {
  const std::string bundle = scratch_.Path("a.clew");
  const json report = Import(kFile, bundle);
  const ProgramOutput info = Clew({"info", bundle});
  EXPECT_EQ(info.exit_status, kExitOk) << info.text;
  EXPECT_THAT(info.text, HasSubstr("imported (perf.data)"));
  EXPECT_THAT(info.text, HasSubstr("localhost, Linux 4.14.18, Intel(R) Core"));
  EXPECT_THAT(info.text, HasSubstr("no backtraces: the bundle has no core"));
  ASSERT_EQ(
      ClewInto(scratch_.Path("info"), {"info", "--json", bundle}).exit_status,
      kExitOk);
  const std::string all = ReadText(scratch_.Path("info"));
  EXPECT_THAT(info.text, HasSubstr("56 of them of the kernel"));
  uint64_t with_build_id = 0;
  for (const json& image : report["images"]) {
    EXPECT_TRUE(image["file"].is_null()) << image;
    const std::string id = image["build_id"];
    with_build_id += id.empty() ? 0 : 1;
    EXPECT_THAT(all, HasSubstr(id));
    if (IsOfKernel(image)) {
      EXPECT_THAT(info.text, Not(HasSubstr(id)));
      continue;
    }
    EXPECT_THAT(info.text,
                HasSubstr(fmt::format("{}, build-id {}",
                                      image["path"].get<std::string>(),
                                      id.empty() ? "unknown" : id)));
  }
  EXPECT_GT(with_build_id, 5u);
}

// perf script: switches from 641.255848 to 641.258090 s on CPU 3 alone.
TEST_F(ImportTest, TheDurationIsThatOfTheSwitches) {
  const std::string bundle = scratch_.Path("a.clew");
  Import(kFile, bundle);
  const std::string file = scratch_.Path("info");
  ASSERT_EQ(ClewInto(file, {"info", "--json", bundle}).exit_status, kExitOk);
  const json info = json::parse(ReadText(file), nullptr, false);
  EXPECT_GT(info["duration_ns"].get<uint64_t>(), 2'200'000u);
  EXPECT_LT(info["duration_ns"].get<uint64_t>(), 10'000'000u);
}

// 56 lines of modules would hide the ten that matter.
TEST_F(ImportTest, TheKernelsFilesAreOneLineOfText) {
  const ProgramOutput output =
      Clew({"import", kFile, "-o", scratch_.Path("a.clew")});
  EXPECT_EQ(output.exit_status, kExitOk) << output.text;
  EXPECT_THAT(output.text, Not(HasSubstr(".ko")));
  EXPECT_THAT(output.text,
              HasSubstr("56 of those missing are the kernel and its modules"));
  EXPECT_THAT(output.text, HasSubstr("missing        \"/usr/bin/coreutils\""));
}

TEST_F(ImportTest, GapsNameTheMissingFileAndItsBuildId) {
  const std::string bundle = scratch_.Path("a.clew");
  Import(kFile, bundle);
  const std::string blocks = Decode(bundle, "blocks");
  EXPECT_THAT(blocks, HasSubstr("code-missing"));
  EXPECT_THAT(blocks,
              HasSubstr("\"/lib64/ld-2.23.so\" (build-id "
                        "a3f83cd3799ef4149d3763cee54dd18b967b7ddb, image not "
                        "found) at 0x7fb36d"));
  EXPECT_THAT(blocks,
              HasSubstr("\"[kernel.kallsyms]_text\" (build-id "
                        "672679ceaecf17b7a879e56c56802afc568aa242, image"));
}

// The switch records of both CPUs: each thread is at one place at a time.
TEST_F(ImportTest, SlicesAreTheTimeLinesOfThreadsOnBothCpus) {
  const std::string bundle = scratch_.Path("a.clew");
  Import(kFile, bundle);
  const std::string file = scratch_.Path("slices");
  ASSERT_EQ(ClewInto(file, {"decode", bundle, "--as", "slices", "--json"})
                .exit_status,
            kExitOk);
  const json slices = json::parse(ReadText(file), nullptr, false);
  std::map<int, uint64_t> on_core;
  std::map<int, uint64_t> last;  // by thread
  for (const json& slice : slices["items"]) {
    ++on_core[slice["core"]];
    const int thread = slice["thread"];
    EXPECT_LE(slice["lo"].get<uint64_t>(), slice["hi"].get<uint64_t>());
    if (thread != 0) {  // each CPU has an idle task of its own
      EXPECT_GE(slice["lo"].get<uint64_t>(), last[thread]) << slice;
      last[thread] = slice["lo"];
    }
  }
  // perf script --show-switch-events: 9, 5, 4 and 34 times a thread other than
  // an idle task comes in; ITRACE_START cuts one on CPU 0 in two, and one on
  // CPU 2 was there before.
  EXPECT_THAT(on_core, testing::ElementsAre(
                           testing::Pair(0, 9u + 1u), testing::Pair(1, 5u),
                           testing::Pair(2, 4u + 1u), testing::Pair(3, 34u)));
  EXPECT_TRUE(last.contains(3174)) << "echo itself";
  EXPECT_EQ(slices["summary"]["slices"], slices["items"].size());
}

TEST_F(ImportTest, SolveAndReplaySayWhatIsLacking) {
  const std::string bundle = scratch_.Path("a.clew");
  Import(kFile, bundle);
  for (const char* command : {"solve", "replay"}) {
    const ProgramOutput output = Clew({command, bundle});
    EXPECT_EQ(output.exit_status, kExitEnvironment) << command;
    EXPECT_THAT(output.text,
                HasSubstr("was imported from perf.data alone: it lacks"))
        << command;
    EXPECT_EQ(output.text.find('\n'), output.text.size() - 1) << output.text;
  }
}

// Images.

class ImageTest : public ImportTest {
 protected:
  // A shared object with the build-id given in hexadecimal, as `name`.
  std::string MakeObject(const std::string& name, const std::string& build_id) {
    const std::string path = scratch_.Path(name);
    fs::create_directories(fs::path(path).parent_path());
    const ProgramOutput made = Shell(
        "echo 'int clew_f(void) { return 1; }' | cc -x c -shared -fPIC "
        "-g -Wl,--build-id=0x" +
        build_id + " -o '" + path + "' -");
    EXPECT_EQ(made.exit_status, 0) << made.text;
    return path;
  }

  std::string BuildId() {
    const json report = Import(kFile, scratch_.Path("ask.clew"));
    return ImageOf(report, kImageName).value("build_id", "");
  }
};

TEST_F(ImageTest, AreFoundByBuildIdWhateverTheirName) {
  const std::string id = BuildId();
  ASSERT_EQ(id.size(), 40u);
  MakeObject("sysroot/deep/other-name", id);
  const std::string bundle = scratch_.Path("a.clew");
  const json report =
      Import(kFile, bundle, {"--images", scratch_.Path("sysroot")});
  EXPECT_EQ(report["images_found"], 1);
  EXPECT_TRUE(ReadText(scratch_.Path("sysroot/deep/other-name")) ==
              ReadText(bundle + "/images/" + id + "/" + kImageName));
  EXPECT_THAT(Clew({"info", bundle}).text, Not(HasSubstr(kImageName)));
}

TEST_F(ImageTest, OfAnotherBuildAreRefusedByName) {
  ASSERT_FALSE(BuildId().empty());
  const std::string wrong = std::string(39, '1') + "2";
  const std::string file =
      MakeObject(std::string("sysroot/") + kImageName, wrong);
  const std::string bundle = scratch_.Path("a.clew");
  const json report =
      Import(kFile, bundle, {"--images", scratch_.Path("sysroot")});
  const json image = ImageOf(report, kImageName);
  ASSERT_EQ(image["refused"].size(), 1u) << image;
  EXPECT_EQ(image["refused"][0]["file"], file);
  EXPECT_EQ(image["refused"][0]["why"], "its build-id is " + wrong);
  EXPECT_EQ(report["files_refused"], 1);
  EXPECT_EQ(report["images_found"], 0);
  EXPECT_FALSE(fs::exists(bundle + "/images/" + wrong));
}

// A recording of our own, whose programs are here.
TEST_F(ImageTest, WithAllImagesEveryInstructionIsDecoded) {
  const std::string recorded = scratch_.Path("r.clew");
  ASSERT_EQ(Clew({"record", "-o", recorded, "--", "true"}).exit_status, 0);
  const std::string bundle = scratch_.Path("a.clew");
  const json report = Import(recorded + "/perf.data", bundle,
                             {"--images", recorded + "/images"});
  EXPECT_EQ(report["images_found"], 3);  // true, ld.so, libc
  std::vector<json> info;
  for (const std::string& of : {recorded, bundle}) {
    const std::string file = scratch_.Path("info");
    ClewInto(file, {"info", "--json", "--no-backtraces", of});
    info.push_back(json::parse(ReadText(file), nullptr, false));
  }
  EXPECT_GT(info[0]["instructions"].get<uint64_t>(), 10'000u);
  EXPECT_EQ(info[0]["instructions"], info[1]["instructions"]);
  EXPECT_EQ(info[0]["threads"], info[1]["threads"]);
  EXPECT_EQ(info[1]["loss"]["gaps"], 0);
}

TEST_F(ImageTest, DebugInformationIsNoCode) {
  const std::string id = BuildId();
  const std::string file = MakeObject("object", id);
  fs::create_directories(scratch_.Path("debug"));
  ASSERT_EQ(Shell("objcopy --only-keep-debug " + file + " " +
                  scratch_.Path("debug/") + kImageName + ".debug")
                .exit_status,
            0);
  const json report = Import(kFile, scratch_.Path("a.clew"),
                             {"--images", scratch_.Path("debug")});
  const json image = ImageOf(report, kImageName);
  ASSERT_EQ(image["refused"].size(), 1u) << image;
  EXPECT_THAT(image["refused"][0]["why"].get<std::string>(),
              HasSubstr("debug information alone"));
  EXPECT_EQ(report["images_found"], 0);
}

TEST_F(ImageTest, AFolderThatIsNoneIsAUsageError) {
  const std::string bundle = scratch_.Path("a.clew");
  const ProgramOutput output =
      Clew({"import", kFile, "-o", bundle, "--images", kFile});
  EXPECT_EQ(output.exit_status, kExitUsage);
  EXPECT_THAT(output.text, HasSubstr("is no folder of images"));
  ExpectNothingAt(bundle);
}

// Core dumps: tests/fuzz/corpus/bundle_fuzz/core is one behind its first byte.

std::string SomeCore() {
  return ReadText(CLEW_TEST_CORPUS "/bundle_fuzz/core").substr(1);
}

TEST_F(ImportTest, ACoreDumpGivesTheFailure) {
  std::string core = SomeCore();
  const size_t prstatus = core.find(std::string("CORE\0\0\0\0", 8));
  ASSERT_NE(prstatus, std::string::npos);
  const std::string path = scratch_.Path("core.1");
  core[prstatus + 8 + 12] = 11;  // pr_cursig
  core[prstatus + 8 + 13] = 0;
  WriteText(path, core);
  const std::string bundle = scratch_.Path("a.clew");
  const json report = Import(kFile, bundle, {"--core", path});
  EXPECT_EQ(report["core"], true);
  EXPECT_EQ(report["failure"]["kind"], "signal");
  EXPECT_EQ(report["failure"]["signal"], 11);
  EXPECT_TRUE(core == ReadText(bundle + "/core"));
  EXPECT_THAT(Clew({"info", "--no-backtraces", bundle}).text,
              HasSubstr("signal 11 (SIGSEGV) in thread"));
  // It is of another run, and import says so.
  EXPECT_THAT(report["warnings"].dump(), HasSubstr("is not in the recording"));
}

TEST_F(ImportTest, WithoutACoreDumpTheFailureIsNotKnown) {
  const json report = Import(kFile, scratch_.Path("a.clew"));
  EXPECT_EQ(report["failure"]["kind"], "none");
  EXPECT_THAT(Clew({"info", scratch_.Path("a.clew")}).text,
              HasSubstr("failure       not known"));
}

TEST_F(ImportTest, ADamagedCoreDumpIsRefusedWithAPlace) {
  const std::string core = SomeCore();
  const std::string path = scratch_.Path("core.1");
  const std::string bundle = scratch_.Path("a.clew");
  for (const size_t size :
       {size_t{0}, size_t{10}, size_t{70}, core.size() / 2}) {
    WriteText(path, core.substr(0, size));
    const ProgramOutput output =
        Clew({"import", kFile, "-o", bundle, "--core", path});
    EXPECT_EQ(output.exit_status, kExitCorrupt) << size << output.text;
    EXPECT_THAT(output.text, HasSubstr(path + ": "));
    ExpectNothingAt(bundle);
  }
}

// Trouble.

TEST_F(ImportTest, AnExistingOutputIsLeftAlone) {
  const std::string bundle = scratch_.Path("a.clew");
  WriteText(bundle + "/precious", "x");
  const ProgramOutput output = Clew({"import", kFile, "-o", bundle});
  EXPECT_EQ(output.exit_status, kExitUsage);
  EXPECT_THAT(output.text, HasSubstr("exists; remove it"));
  EXPECT_EQ(ReadText(bundle + "/precious"), "x");
}

TEST_F(ImportTest, AFolderThatCannotBeWrittenIsNamed) {
  const ProgramOutput output =
      Clew({"import", kFile, "-o", "/proc/sys/a.clew"});
  EXPECT_EQ(output.exit_status, kExitEnvironment);
  EXPECT_THAT(output.text, HasSubstr("cannot create directory "
                                     "\"/proc/sys/a.clew.partial\""));
}

TEST_F(ImportTest, AFullDiskLeavesNothingBehind) {
  const ProgramOutput output =
      Shell("ulimit -f 64; trap '' XFSZ; " + Binary() + " import " + kFile +
            " -o " + scratch_.Path("a.clew"));
  EXPECT_EQ(output.exit_status, kExitEnvironment) << output.text;
  EXPECT_THAT(output.text, HasSubstr("cannot write"));
  ExpectNothingAt(scratch_.Path("a.clew"));
}

TEST_F(ImportTest, AnInputThatIsNoneIsNamed) {
  const std::string bundle = scratch_.Path("a.clew");
  WriteText(scratch_.Path("text"), "not a perf.data file, not at all");
  ProgramOutput output = Clew({"import", scratch_.Path("text"), "-o", bundle});
  EXPECT_EQ(output.exit_status, kExitCorrupt);
  EXPECT_THAT(output.text, HasSubstr("text: offset 0x0: magic"));
  output = Clew({"import", scratch_.Path("absent"), "-o", bundle});
  EXPECT_EQ(output.exit_status, kExitEnvironment);
  output = Clew({"import", scratch_.Path(""), "-o", bundle});
  EXPECT_EQ(output.exit_status, kExitUsage);
  EXPECT_THAT(output.text, HasSubstr("is a folder; wanted the perf.data"));
  output = Shell("printf x | " + Binary() + " import - -o " + bundle);
  EXPECT_EQ(output.exit_status, kExitCorrupt);
  EXPECT_THAT(output.text, HasSubstr("standard input: offset 0x0"));
  ExpectNothingAt(bundle);
}

TEST_F(ImportTest, WhatAnInputLooksLikeIsToldWithWhatToDo) {
  const std::string bundle = scratch_.Path("a.clew");
  const std::string input = scratch_.Path("input");
  const std::map<std::string, std::string> texts = {
      {"\x1f\x8b\x08 and more", "gzip: unpack it with gunzip"},
      {"\x28\xb5\x2f\xfd and more", "zstd: unpack it with unzstd"},
      {"\x7f"
       "ELF and more bytes",
       "an ELF file: a program or library goes to --images"},
      {"main 4711 [000] 12.3: branches: 0 => 401000", "looks like text"},
      {"\x01\x02 and more", "nothing known"}};
  for (const auto& [bytes, told] : texts) {
    WriteText(input, bytes);
    const ProgramOutput output = Clew({"import", input, "-o", bundle});
    EXPECT_EQ(output.exit_status, kExitCorrupt) << told;
    EXPECT_THAT(output.text, HasSubstr(told));
  }
  ExpectNothingAt(bundle);
}

TEST_F(ImportTest, TheFoldersOfPerfAreToldApart) {
  const std::string bundle = scratch_.Path("a.clew");
  WriteText(scratch_.Path("threads/data"), ReadText(kFile));
  WriteText(scratch_.Path("threads/data.0"), "");
  ProgramOutput output =
      Clew({"import", scratch_.Path("threads"), "-o", bundle});
  EXPECT_EQ(output.exit_status, kExitUsage);
  EXPECT_THAT(output.text, HasSubstr("record without --threads"));
  WriteText(scratch_.Path("kcore/data"), ReadText(kFile));
  fs::create_directories(scratch_.Path("kcore/kcore_dir"));
  EXPECT_EQ(Import(scratch_.Path("kcore"), bundle)["cores"], 2);
  output = Clew({"import", bundle, "-o", scratch_.Path("b.clew")});
  EXPECT_THAT(output.text, HasSubstr("is a bundle already"));
}

TEST_F(ImportTest, APerfDataIsNoBundleAndImportIsNamed) {
  for (const char* command : {"info", "check", "solve"}) {
    const ProgramOutput output = Clew({command, kFile});
    EXPECT_EQ(output.exit_status, kExitUsage) << command;
    EXPECT_THAT(output.text, HasSubstr("'clew import " + kFile + " -o"));
  }
}

TEST_F(ImportTest, WhatPerfInjectDecodedIsToldToBeThat) {
  if (Shell("perf inject --help").exit_status != 0) {
    GTEST_SKIP() << "no perf here; install linux-perf";
  }
  const std::string bundle = scratch_.Path("a.clew");
  const std::string input = scratch_.Path("injected");
  Shell("perf inject --itrace -i " + kFile + " -o " + input);
  ProgramOutput output = Clew({"import", input, "-o", bundle});
  EXPECT_EQ(output.exit_status, kExitEnvironment);
  EXPECT_THAT(output.text, HasSubstr("import the recording that it read"));
  output = Shell("perf inject --itrace -i " + kFile + " -o - 2>/dev/null | " +
                 Binary() + " import - -o " + bundle);
  EXPECT_THAT(output.text, HasSubstr("import the recording that it read"));
  ExpectNothingAt(bundle);
}

// A file cut off or damaged is refused with a place, or imported, and then
// clew can read what it made.
class DamageTest : public ImportTest {
 protected:
  void ImportDamaged(const std::string& bytes, const std::string& how) {
    SCOPED_TRACE(how);
    const std::string input = scratch_.Path("damaged");
    const std::string bundle = scratch_.Path("a.clew");
    WriteText(input, bytes);
    const ProgramOutput output =
        e2e::Run({Binary(), "import", input, "-o", bundle});
    if (output.exit_status == kExitOk) {
      ++imported_;
      const int status =
          e2e::Run({Binary(), "decode", bundle, "--as", "none"}).exit_status;
      EXPECT_TRUE(status == kExitOk || status == kExitCorrupt) << status;
      EXPECT_EQ(e2e::Run({Binary(), "info", bundle}).exit_status, status);
      fs::remove_all(bundle);
      return;
    }
    ++refused_;
    EXPECT_TRUE(output.exit_status == kExitCorrupt ||
                output.exit_status == kExitEnvironment)
        << output.exit_status << output.text;
    EXPECT_THAT(output.text, HasSubstr("clew: " + input + ": "));
    ExpectNothingAt(bundle);
  }

  int imported_ = 0;
  int refused_ = 0;
};

TEST_F(DamageTest, TruncatedFilesAreRefusedOrReadable) {
  for (const std::string& name : {kFile, kPiped}) {
    const std::string bytes = ReadText(name);
    for (size_t i = 0; i < 15; ++i) {
      ImportDamaged(bytes.substr(0, bytes.size() * i / 15),
                    fmt::format("{} cut at {}/15", name, i));
    }
  }
  EXPECT_GT(refused_, 15);
}

// How many.
class FlippedBitsTest : public DamageTest,
                        public testing::WithParamInterface<int> {};

TEST_P(FlippedBitsTest, AreRefusedOrReadable) {
  const std::string bytes = ReadText(kFile);
  const auto seed =
      static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  Random random(seed);
  for (int i = 0; i < GetParam(); ++i) {
    // Half of them in the sideband's dense beginning.
    const uint64_t at = random.Below(i % 2 ? bytes.size() : 8192);
    std::string copy = bytes;
    copy[at] = static_cast<char>(copy[at] ^ (1 << random.Below(8)));
    ImportDamaged(copy, fmt::format("seed {}, byte {}", seed, at));
  }
  EXPECT_GT(imported_, 0);
}

INSTANTIATE_TEST_SUITE_P(Few, FlippedBitsTest, testing::Values(10));
// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, FlippedBitsTest, testing::Values(40));

}  // namespace
}  // namespace clew::e2e
