#ifndef CLEW_CMAKE_HEADERS_H_
#define CLEW_CMAKE_HEADERS_H_

// What most files of the parts include, compiled once (clew_add_headers). A
// file includes what it uses all the same: CLEW_ALONE compiles it without this
// header.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <expected>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "common/check.h"
#include "common/result.h"

#endif  // CLEW_CMAKE_HEADERS_H_
