#ifndef CLEW_COMMON_OS_MAPS_PATH_H_
#define CLEW_COMMON_OS_MAPS_PATH_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace clew {

// The path of a file that /proc/PID/maps shows as `shown`, of a file with that
// `inode`. The kernel writes a newline as "\012" and a backslash as itself
// (fs/proc/task_mmu.c, show_map_vma; fs/seq_file.c, mangle_path), so a name
// with "\012" may be either; the file that is there, and has the inode,
// decides.
// `shown` as it is where no file of either name can be found.
std::string PathOfMapping(std::string_view shown, uint64_t inode);

// Whether the path of a mapping or of /proc/PID/exe is of a file that was
// unlinked: the kernel adds " (deleted)" (fs/d_path.c). A file's own name may
// end so, too.
bool IsDeleted(std::string_view path);
// The path that such a file had; another one as it is.
std::string_view WithoutDeleted(std::string_view path);

}  // namespace clew

#endif  // CLEW_COMMON_OS_MAPS_PATH_H_
