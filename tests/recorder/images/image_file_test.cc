// Goal: a process leads a recorder with more rights than it has to no file that
// it has not mapped, and may not read, itself; what it makes of its files costs
// no more than the limits say and ends nothing.
// Method: the attacks: links, files of other users, headers without end (reads
// are counted), files that are cut while they are open. Mappings are this
// process's or a child's; a folder without map_files stands for a procfs that
// may not be asked for them.
#include "recorder/images/image_file.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "common/build_id.h"
#include "common/text/hex.h"
#include "recorder/images/image_store.h"
#include "recorder/images/process_scan.h"

namespace clew::recorder {
namespace {

namespace fs = std::filesystem;
using bundle::BundleWriter;
using bundle::PerfMapping;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr uid_t kNobody = 65534;
constexpr size_t kIdBytes = 20;

// An ELF file with a build-id of 20 times `id`.
std::string ElfFile(char id) {
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_phoff = sizeof header;
  header.e_phnum = 1;
  Elf64_Phdr notes = {};
  notes.p_type = PT_NOTE;
  notes.p_offset = sizeof header + sizeof notes;
  notes.p_filesz = sizeof(Elf64_Nhdr) + 4 + kIdBytes;
  const Elf64_Nhdr note = {
      .n_namesz = 4, .n_descsz = kIdBytes, .n_type = NT_GNU_BUILD_ID};
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  file.append(reinterpret_cast<const char*>(&notes), sizeof notes);
  file.append(reinterpret_cast<const char*>(&note), sizeof note);
  file.append("GNU", 4);
  file.append(kIdBytes, id);
  file.resize(2 * 4096);
  return file;
}

std::vector<std::byte> Id(char id) {
  return std::vector<std::byte>(kIdBytes, static_cast<std::byte>(id));
}

class ImageFileTest : public testing::Test {
 protected:
  ImageFileTest() {
    // Where everybody may read.
    std::string pattern = "/tmp/clew-imagefile-XXXXXX";
    folder_ = fs::canonical(mkdtemp(pattern.data()));
    fs::permissions(folder_, fs::perms(0755));
  }
  ~ImageFileTest() override {
    for (const auto& [data, size] : mapped_) {
      munmap(data, size);
    }
    fs::remove_all(folder_);
  }
  std::string Path(const std::string& name) const {
    return folder_ + "/" + name;
  }
  std::string Make(const std::string& name, const std::string& bytes,
                   mode_t mode = 0755) const {
    std::ofstream(Path(name)) << bytes;
    chmod(Path(name).c_str(), mode);
    return Path(name);
  }
  // A folder like /proc of which map_files may not be read.
  std::string ProcWithoutMapFiles(int process,
                                  const std::string& root = "/") const {
    const std::string proc = Path("proc");
    const std::string of = fmt::format("{}/{}", proc, process);
    fs::create_directories(of);
    fs::create_symlink(root, of + "/root");
    fs::create_symlink(fmt::format("/proc/{}/maps", process), of + "/maps");
    fs::create_symlink(fmt::format("/proc/{}/status", process), of + "/status");
    fs::create_symlink(fmt::format("/proc/{}/task", process), of + "/task");
    return proc;
  }
  void Map(const std::string& path) {
    const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    void* data =
        mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd.get(), 0);
    ASSERT_NE(data, MAP_FAILED);
    mapped_.emplace_back(data, 4096);
  }
  BundleWriter NewBundle() const {
    auto bundle = BundleWriter::Create(PosixFileSystem(), Path("b"));
    EXPECT_TRUE(bundle) << bundle.error().message;
    return std::move(*bundle);
  }
  static HeldImages Hold(const std::string& path) {
    auto file = ImageFile::AtPath(path, ImageRights::kAnyone);
    EXPECT_TRUE(file) << file.error().message;
    HeldImages held;
    held.Add(path, std::move(*file));
    return held;
  }
  static std::string WhyNot(const std::string& path, ImageRights rights) {
    const auto file = ImageFile::AtPath(path, rights);
    return file ? "" : file.error().message;
  }

  std::string folder_;
  std::vector<std::pair<void*, size_t>> mapped_;
};

TEST_F(ImageFileTest, APathThatBecameALinkLeadsToTheMappedFileOrToNone) {
  const std::string path = Make("lib.so", ElfFile('a'));
  const std::string secret = Make("secret", ElfFile('s'), 0600);
  Map(path);
  for (const bool link : {true, false}) {
    // What maps calls a file without a name may be another file's name.
    for (const std::string& name : {path, path + " (deleted)"}) {
      fs::remove(name);
      link ? fs::create_symlink(secret, name) : fs::copy(secret, name);
    }
    HeldImages held;
    ProcessScanner("/proc").Scan({getpid()}, &held);
    EXPECT_EQ(held.Find(path, Id('s')), nullptr);
    // If map_files may be opened.
    EXPECT_EQ(held.Find(path, {}), held.Find(path, Id('a')));
    HeldImages by_path;
    ProcessScanner other(ProcWithoutMapFiles(getpid()));
    EXPECT_THAT(other.Scan({getpid()}, &by_path), Not(IsEmpty()));
    EXPECT_EQ(by_path.Find(path, {}), nullptr);
    fs::remove_all(Path("proc"));
  }
}

TEST_F(ImageFileTest,
       WithoutMapFilesTheFileAtThePathIsTakenIfItIsTheMappedOne) {
  const std::string path = Make("lib.so", ElfFile('a'));
  Map(path);
  HeldImages held;
  ProcessScanner scanner(ProcWithoutMapFiles(getpid()));
  const auto scanned = scanner.Scan({getpid()}, &held);
  EXPECT_NE(held.Find(path, Id('a')), nullptr);
  ASSERT_EQ(scanned.size(), 1u);
  EXPECT_TRUE(
      std::ranges::any_of(scanned[0].mappings, [&](const PerfMapping& mapping) {
        return mapping.path == path && mapping.build_id == Id('a');
      }));
}

TEST_F(ImageFileTest, OfAProcessInAnotherRootTheMappedFileIsTaken) {
  const std::string path = Make("lib.so", ElfFile('a'));
  Map(path);
  // The same path leads to another file there.
  fs::create_directories(Path("root") + folder_);
  fs::copy(Make("other.so", ElfFile('b')), Path("root") + path);
  HeldImages held;
  ProcessScanner scanner(ProcWithoutMapFiles(getpid(), Path("root")));
  EXPECT_EQ(scanner.Scan({getpid()}, &held).size(), 1u);
  EXPECT_NE(held.Find(path, Id('a')), nullptr);
  EXPECT_EQ(held.Find(path, Id('b')), nullptr);
}

// What a process may execute and not read, and what it mapped with rights that
// it gave up.
TEST_F(ImageFileTest, OfAnotherUserWhatItMayNotReadIsNotHeld) {
  if (getuid() != 0) {
    GTEST_SKIP() << "needs root, to be another user";
  }
  const std::string closed = Make("closed.so", ElfFile('c'), 0711);
  const std::string open_to_all = Make("open.so", ElfFile('o'), 0755);
  Map(closed);
  Map(open_to_all);
  int ready[2] = {};
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const bool is_other = setgid(kNobody) == 0 && setuid(kNobody) == 0;
    (void)!write(ready[1], "x", is_other ? 1 : 0);
    close(ready[1]);
    pause();
    _exit(0);
  }
  close(ready[1]);
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  HeldImages held;
  ProcessScanner scanner("/proc");
  scanner.Scan({child}, &held);
  EXPECT_NE(held.Find(open_to_all, {}), nullptr);
  EXPECT_EQ(held.Find(closed, {}), nullptr);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(ImageFileTest, ByPathAloneOnlyWhatEverybodyMayReadIsTaken) {
  const std::string open_to_all = Make("open", ElfFile('o'));
  const std::string secret = Make("secret", ElfFile('s'), 0600);
  fs::create_symlink(open_to_all, Path("link"));
  fs::create_directory(Path("closed"));
  Make("closed/open", ElfFile('o'));
  fs::permissions(Path("closed"), fs::perms(0700));
  fs::create_directory_symlink("/tmp", Path("way"));
  const auto anyone = ImageRights::kAnyone;
  EXPECT_EQ(WhyNot(open_to_all, anyone), "");
  EXPECT_THAT(WhyNot(secret, anyone), HasSubstr("everybody"));
  EXPECT_THAT(WhyNot(Path("closed/open"), anyone), HasSubstr("everybody"));
  EXPECT_THAT(WhyNot(Path("link"), anyone), HasSubstr("cannot open"));
  EXPECT_THAT(WhyNot(Path("way") + "/" + fs::path(folder_).filename().string() +
                         "/open",
                     anyone),
              HasSubstr("cannot open"));
  EXPECT_EQ(WhyNot(secret, ImageRights::kOwn), "");
}

TEST_F(ImageFileTest, WhatIsNoElfFileIsRefusedAndNotWaitedFor) {
  Make("text", "root:secret:1:2:3\n");
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0666), 0);
  chmod(Path("fifo").c_str(), 0666);
  for (const ImageRights rights : {ImageRights::kOwn, ImageRights::kAnyone}) {
    EXPECT_THAT(WhyNot(Path("text"), rights), HasSubstr("is no ELF file"));
    EXPECT_THAT(WhyNot(Path("fifo"), rights), HasSubstr("not a regular file"));
    EXPECT_THAT(WhyNot(folder_, rights), HasSubstr("not a regular file"));
  }
}

TEST_F(ImageFileTest, OfHeadersWithoutEndNoMoreIsReadThanTheLimits) {
  constexpr uint64_t kFileBytes = uint64_t{1} << 30;
  std::string file = ElfFile('a');
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof header);
  header.e_phnum = UINT16_MAX;
  Elf64_Phdr notes = {};
  notes.p_type = PT_NOTE;
  notes.p_offset = sizeof header + UINT16_MAX * sizeof notes;
  notes.p_filesz = kFileBytes - notes.p_offset;
  file.assign(reinterpret_cast<const char*>(&header), sizeof header);
  for (int i = 0; i < UINT16_MAX; ++i) {
    file.append(reinterpret_cast<const char*>(&notes), sizeof notes);
  }
  const std::string path = Make("endless", file);
  fs::resize_file(path, kFileBytes);
  const auto image = ImageFile::AtPath(path, ImageRights::kAnyone);
  ASSERT_TRUE(image) << image.error().message;
  const auto mapped = MappedFile::Open(path);
  ASSERT_TRUE(mapped);
  EXPECT_THAT(image->BuildId(), IsEmpty());
  EXPECT_THAT(BuildIdOf(mapped->bytes()), IsEmpty());
  // What both do, counted.
  size_t reads = 0;
  size_t bytes = 0;
  const auto read = [&](uint64_t offset, std::span<std::byte> out) {
    ++reads;
    bytes += out.size();
    std::ranges::copy(mapped->bytes().subspan(offset, out.size()), out.begin());
    return true;
  };
  EXPECT_THAT(BuildIdOf(read, kFileBytes), IsEmpty());
  EXPECT_LE(bytes, EI_NIDENT + sizeof header + kHeaderBytesMax + kNoteBytesMax);
  EXPECT_LE(reads, 3 + kHeaderBytesMax / sizeof notes);
}

TEST_F(ImageFileTest, AFileThatIsCutWhileItIsOpenIsMissing) {
  const std::string path = Make("cut", ElfFile('a'));
  HeldImages held = Hold(path);
  FilesHere source(PosixFileSystem(), &held, ImageRights::kAnyone);
  const ImageFile* image = held.Find(path, Id('a'));
  ASSERT_NE(image, nullptr);
  fs::resize_file(path, 70);
  EXPECT_THAT(image->BuildId(), IsEmpty());
  BundleWriter bundle = NewBundle();
  auto store = ImageStore::Create(bundle);
  ASSERT_TRUE(store) << store.error().message;
  const auto stored = store->Store(source, {path, Id('a')}, UINT64_MAX);
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_THAT(stored->why, HasSubstr("cut"));
  EXPECT_TRUE(fs::is_empty(bundle.folder() + "/images"));
}

TEST_F(ImageFileTest, WhatIsStoredIsOfTheBuildThatTheCopyIs) {
  const std::string path = Make("lib.so", ElfFile('a'));
  HeldImages held = Hold(path);
  FilesHere source(PosixFileSystem(), &held, ImageRights::kAnyone);
  // Written over while it is open.
  Make("lib.so", ElfFile('b'));
  BundleWriter bundle = NewBundle();
  auto store = ImageStore::Create(bundle);
  ASSERT_TRUE(store) << store.error().message;
  const auto other = store->Store(source, {path, Id('a')}, UINT64_MAX);
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_THAT(other->why, HasSubstr("another build"));
  EXPECT_TRUE(fs::is_empty(bundle.folder() + "/images"));
  for (int i = 0; i < 2; ++i) {
    const auto stored = store->Store(source, {path, {}}, UINT64_MAX);
    ASSERT_TRUE(stored) << stored.error().message;
    EXPECT_EQ(stored->why, "");
    EXPECT_EQ(stored->info.build_id, Id('b'));
  }
  const auto copied =
      ReadWholeFile(bundle.folder() + "/images/" + ToHex(Id('b')) + "/lib.so");
  ASSERT_TRUE(copied) << copied.error().message;
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(copied->data()),
                        copied->size()),
            ElfFile('b'));
  EXPECT_FALSE(fs::exists(bundle.folder() + "/images/copy"));
}

TEST(FileUserTest, OwnerGroupsAndModeDecide) {
  const FileUser user{.user = 5, .groups = {7, 8}};
  struct stat info = {};
  const auto may = [&](uid_t owner, gid_t group, mode_t mode) {
    info.st_uid = owner;
    info.st_gid = group;
    info.st_mode = S_IFREG | mode;
    return user.MayRead(info);
  };
  EXPECT_TRUE(may(5, 1, 0400));
  EXPECT_FALSE(may(5, 7, 0044));
  EXPECT_TRUE(may(1, 8, 0040));
  EXPECT_FALSE(may(1, 8, 0404));
  EXPECT_TRUE(may(1, 1, 0004));
  EXPECT_FALSE(may(1, 1, 0710));
  const auto self = FileUserOf("/proc", getpid());
  ASSERT_TRUE(self) << self.error().message;
  EXPECT_EQ(self->user, geteuid());
  EXPECT_THAT(self->groups, testing::Contains(getegid()));
}

}  // namespace
}  // namespace clew::recorder
