# Build functions. Dependencies point one way: a component may use only
# components that were added before it, and its files may include, by path from
# the root, only itself and what it names in USES.

# clew_options: what all our targets are compiled with.
add_library(clew_options INTERFACE)
target_compile_features(clew_options INTERFACE cxx_std_23)
target_include_directories(clew_options INTERFACE ${PROJECT_SOURCE_DIR}
                                                  ${PROJECT_BINARY_DIR})
target_compile_options(
  clew_options INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
                         $<$<BOOL:${CLEW_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++ 12's own std::stable_sort uses a deprecated function; clang says so
  # where it is instantiated, which is our code.
  target_compile_options(clew_options INTERFACE -Wno-deprecated-declarations)
endif()
if(NOT CLEW_ALONE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # It takes a type of a file that is compiled with others for one of a header.
  target_compile_options(
    clew_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
if(CLEW_SANITIZE)
  target_compile_options(
    clew_options INTERFACE -fsanitize=${CLEW_SANITIZE} -fno-omit-frame-pointer
                           -fno-sanitize-recover=all)
  target_link_options(clew_options INTERFACE -fsanitize=${CLEW_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # Coverage for the fuzz targets; without it libFuzzer guesses blindly.
    target_compile_options(clew_options INTERFACE -fsanitize=fuzzer-no-link)
  else()
    # GCC's manual, "Program Instrumentation Options", on -fsanitize=address: it
    # then takes what it has instrumented, as in <regex>, for uninitialised.
    target_compile_options(clew_options INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()

# clew_cache_with_headers(<target>): lets ccache find what was compiled with
# compiled headers. Source: ccache's manual, "Precompiled headers". (Clang writes
# the times of the headers into them, which are others in every clone.)
function(clew_cache_with_headers target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(option -fpch-preprocess)
  else()
    set(option "SHELL:-Xclang -fno-pch-timestamp")
  endif()
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${option}>)
endfunction()

# clew_headers, clew_test_headers: what most files include, compiled once, with the
# options of parts and with those of test programs. CLEW_ALONE does without.
#
# clew_add_headers(<name> <header> <libraries>...)
function(clew_add_headers name header)
  file(WRITE ${PROJECT_BINARY_DIR}/${name}.cc "")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/${name}.cc)
  target_link_libraries(${name} PRIVATE clew_options fmt::fmt ${ARGN})
  target_precompile_headers(${name} PRIVATE ${PROJECT_SOURCE_DIR}/${header})
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    clew_cache_with_headers(${name})
  endif()
endfunction()
# clew_use_headers(<target> <name>)
function(clew_use_headers target name)
  if(NOT CLEW_ALONE)
    target_precompile_headers(${target} REUSE_FROM ${name})
    clew_cache_with_headers(${target})
  endif()
endfunction()

# Half of what compiling a test costs at -O2 -g; a backtrace still has lines.
set(clew_test_options $<$<CONFIG:RelWithDebInfo>:-O1> $<$<CONFIG:RelWithDebInfo>:-g1>)
if(NOT CLEW_ALONE)
  clew_add_headers(clew_headers cmake/headers.h)
  clew_add_headers(clew_test_headers tests/support/headers.h GTest::gmock
                   GTest::gtest)
  # As executables are compiled.
  set_target_properties(clew_test_headers PROPERTIES POSITION_INDEPENDENT_CODE
                                                     OFF)
  target_compile_options(clew_test_headers PRIVATE -fPIE ${clew_test_options})
endif()

# clew_check_includes(<path> <parts> <files>...)
# Refuses, when CMake configures, an include of a folder in which none of these
# parts has a file. A folder below that of a part may be another part.
function(clew_check_includes path parts)
  set(folders "")
  foreach(part IN LISTS parts)
    string(MAKE_C_IDENTIFIER clew_${part} target)
    get_property(of_part GLOBAL PROPERTY ${target}_folders)
    if(NOT of_part)
      set(of_part ${part})  # generated, or left out
    endif()
    list(APPEND folders ${of_part})
  endforeach()
  string(REPLACE ";" "|" pattern "${folders}")
  foreach(file IN LISTS ARGN)
    file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/${file} includes
         REGEX "^ *# *include \"")
    list(FILTER includes EXCLUDE REGEX "\"(${pattern})/[^/]*\"")
    if(includes)
      message(SEND_ERROR "${path}: ${file}: not in USES: ${includes}")
    endif()
  endforeach()
endfunction()

# clew_component(<path> SOURCES <.h, .cc> [USES <components>]
#                [OPTIONAL <components>] [LIBS <foreign>] [FILES_ALONE])
# A static library, called from the folder <path>/CMakeLists.txt. Sources are
# relative to that folder. OPTIONAL: used where they are built. FILES_ALONE: what
# links the part takes only those of its files that it calls, which files that are
# compiled together do not allow.
function(clew_component path)
  cmake_parse_arguments(ARG "FILES_ALONE" "" "SOURCES;USES;OPTIONAL;LIBS" ${ARGN})
  string(MAKE_C_IDENTIFIER clew_${path} target)
  get_property(left_out GLOBAL PROPERTY clew_left_out)
  if(path IN_LIST left_out)
    message(FATAL_ERROR "a part before ${path} names it in OPTIONAL")
  endif()
  add_library(${target} STATIC ${ARG_SOURCES})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  if(ARG_FILES_ALONE)
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  endif()
  target_link_libraries(${target} PUBLIC clew_options PRIVATE ${ARG_LIBS})
  foreach(used IN LISTS ARG_USES)
    string(MAKE_C_IDENTIFIER clew_${used} used_target)
    if(NOT TARGET ${used_target})
      message(
        FATAL_ERROR "${path} uses ${used}, which comes later or not at all")
    endif()
    target_link_libraries(${target} PUBLIC ${used_target})
  endforeach()
  foreach(used IN LISTS ARG_OPTIONAL)
    if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${used}/CMakeLists.txt)
      message(FATAL_ERROR "${path} uses ${used}, which is no part")
    endif()
    string(MAKE_C_IDENTIFIER clew_${used} used_target)
    if(TARGET ${used_target})
      target_link_libraries(${target} PUBLIC ${used_target})
      list(APPEND ARG_USES ${used})
    else()
      set_property(GLOBAL APPEND PROPERTY clew_left_out ${used})
    endif()
  endforeach()
  clew_use_headers(${target} clew_headers)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set(folders ${ARG_SOURCES})
  list(TRANSFORM folders PREPEND "${folder}/")
  list(TRANSFORM folders REPLACE "/[^/]*$" "")
  list(REMOVE_DUPLICATES folders)
  set_property(GLOBAL PROPERTY ${target}_folders ${folders})
  clew_check_includes("${path}" "${path};${ARG_USES};${ARG_OPTIONAL}" ${ARG_SOURCES})
  set_property(GLOBAL APPEND_STRING PROPERTY clew_parts
                                             "${path} ${ARG_USES}\n")
  list(TRANSFORM ARG_SOURCES PREPEND "${folder}/")
  set_property(GLOBAL APPEND_STRING PROPERTY clew_part_files
                                             "${path} ${ARG_SOURCES}\n")
endfunction()

# Writes into the build folder a line for each component: parts.txt has its path
# and what it uses, part_files.txt its path and its files. A test compares them
# with docs/design/overview.md and with what the files include.
function(clew_write_parts)
  foreach(list parts part_files)
    get_property(lines GLOBAL PROPERTY clew_${list})
    string(REPLACE ";" " " lines "${lines}")
    file(WRITE ${PROJECT_BINARY_DIR}/${list}.txt "${lines}")
  endforeach()
endfunction()

# clew_test(<name> SOURCES <.cc> [SPLIT <prefix>] [USES <components>]
#           [LIBS <foreign>] [LABELS <ctest labels>] [TIMEOUT <seconds>]
#           [FULL <tests>] [FULL_ENVIRONMENT <NAME=value>...])
# A GoogleTest program, run by ctest as one test. With SPLIT ctest runs the tests
# of each source by themselves, those of clock_test.cc as <prefix>_clock_test.
# Tests may use every part. What takes long or depends on the machine has the label `full` and runs in `tools/test --all` alone:
# with LABELS all of the program; with FULL those of its tests that this filter of
# GoogleTest's names, as a ctest <name>_full; with FULL_ENVIRONMENT <name>_full
# has that environment, and without FULL runs all. The target clew_foreign_tests
# is all programs with the label `foreign`.
function(clew_test name)
  cmake_parse_arguments(ARG "" "SPLIT;TIMEOUT;FULL"
                        "SOURCES;USES;LIBS;LABELS;FULL_ENVIRONMENT" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_compile_options(${name} PRIVATE ${clew_test_options})
  target_link_libraries(${name} PRIVATE clew_options clew_test_main ${ARG_LIBS})
  foreach(used IN LISTS ARG_USES)
    string(MAKE_C_IDENTIFIER clew_${used} used_target)
    target_link_libraries(${name} PRIVATE ${used_target})
  endforeach()
  clew_use_headers(${name} clew_test_headers)
  if(foreign IN_LIST ARG_LABELS)
    if(NOT TARGET clew_foreign_tests)
      add_custom_target(clew_foreign_tests)
    endif()
    add_dependencies(clew_foreign_tests ${name})
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 1800)
  endif()
  set(quick "")
  set(full "")
  if(ARG_FULL)
    set(quick --gtest_filter=-${ARG_FULL})
    set(full --gtest_filter=${ARG_FULL})
  endif()
  if(ARG_SPLIT)
    foreach(source IN LISTS ARG_SOURCES)
      if(source MATCHES "([^/]*)_test\\.cc$")
        clew_add_gtest(
          ${ARG_SPLIT}_${CMAKE_MATCH_1}_test
          "${name};--from=${CMAKE_MATCH_1}_test.cc;${quick}" "${ARG_LABELS}"
          ${ARG_TIMEOUT} "")
      endif()
    endforeach()
  else()
    clew_add_gtest(${name} "${name};${quick}" "${ARG_LABELS}" ${ARG_TIMEOUT} "")
  endif()
  if(ARG_FULL OR ARG_FULL_ENVIRONMENT)
    clew_add_gtest(${name}_full "${name};${full}" "${ARG_LABELS};full"
                   ${ARG_TIMEOUT} "${ARG_FULL_ENVIRONMENT}")
  endif()
endfunction()

# clew_test_support(<name> SOURCES <.cc> [USES <components>] [LIBS <foreign>])
# A static library of what several test programs share.
function(clew_test_support name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIE ${clew_test_options})
  target_link_libraries(${name} PUBLIC clew_options GTest::gmock GTest::gtest
                                       ${ARG_LIBS})
  foreach(used IN LISTS ARG_USES)
    string(MAKE_C_IDENTIFIER clew_${used} used_target)
    target_link_libraries(${name} PUBLIC ${used_target})
  endforeach()
  clew_use_headers(${name} clew_test_headers)
endfunction()

# clew_add_gtest(<ctest's name> <command> <labels> <seconds> <environment>)
function(clew_add_gtest name command labels timeout environment)
  add_test(NAME ${name} COMMAND ${command})
  set_tests_properties(
    ${name}
    PROPERTIES
      TIMEOUT
      ${timeout}
      LABELS
      "${labels}"
      ENVIRONMENT
      "CLEW_SOURCE_DIR=${PROJECT_SOURCE_DIR};CLEW_BINARY_DIR=${PROJECT_BINARY_DIR};LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp;${environment}"
  )
endfunction()

# clew_fuzz(<name> SOURCES <.cc> [USES <components>] [LIBS <foreign>])
# One entry point, LLVMFuzzerTestOneInput. With clang it is a libFuzzer
# program; with g++ it is linked to a driver that runs the inputs named on its
# command line, so that it always compiles.
function(clew_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE clew_options ${ARG_LIBS})
  foreach(used IN LISTS ARG_USES)
    string(MAKE_C_IDENTIFIER clew_${used} used_target)
    target_link_libraries(${name} PRIVATE ${used_target})
  endforeach()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name}
                   PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/standalone_main.cc)
  endif()
endfunction()
