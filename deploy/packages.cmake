# Three Debian packages: `cpack -G DEB` in the build folder. Two builds of the
# same files give the same bytes if SOURCE_DATE_EPOCH is set.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME clew)
# Or CPack puts it before each package's own.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The clew authors <clew@localhost>")
set(CPACK_COMPONENTS_ALL clew clewd clew-collector)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_STRIP_FILES ON)
# DESTDIR, because /etc/clew is not below the prefix.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ
    OWNER_WRITE
    OWNER_EXECUTE
    GROUP_READ
    GROUP_EXECUTE
    WORLD_READ
    WORLD_EXECUTE)

# clew_package(<component> SUMMARY <line> TEXT <more> [DEPENDS <list>]
#              [RECOMMENDS <list>] [SUGGESTS <list>])
# Beside it: debian/<component>/, the maintainer scripts and conffiles.
macro(clew_package component)
  cmake_parse_arguments(ARG "" "SUMMARY;TEXT;DEPENDS;RECOMMENDS;SUGGESTS" ""
                        ${ARGN})
  string(TOUPPER ${component} upper)
  file(GLOB control CONFIGURE_DEPENDS
       ${CMAKE_CURRENT_SOURCE_DIR}/debian/${component}/*)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${component})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${ARG_SUMMARY}\n${ARG_TEXT}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${ARG_DEPENDS}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_RECOMMENDS "${ARG_RECOMMENDS}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_SUGGESTS "${ARG_SUGGESTS}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA "${control}")
endmacro()

clew_package(
  clew
  SUMMARY
  "records a failing run, finds its interleaving, replays it"
  TEXT
  "Records a failing run of a multithreaded program as control flow in the
format of Intel PT, finds a thread interleaving that explains it, and replays
that under gdb. A CPU without Intel PT is enough."
  RECOMMENDS
  "gdb, qemu-user"
  SUGGESTS
  "linux-perf")
clew_package(
  clewd
  SUMMARY
  "saves failures of a host's services as clew bundles"
  TEXT
  "The daemon that runs on every host: keeps the last seconds of trace, saves
them when a service fails, checks and redacts what it saved, and sends it to a
clew-collector."
  DEPENDS
  "clew (= ${PROJECT_VERSION}), systemd"
  # By which the state of watched units is asked.
  RECOMMENDS
  "dbus")
clew_package(
  clew-collector
  SUMMARY
  "collects clew bundles of many hosts and solves them"
  TEXT
  "The server that hosts send their bundles to: stores them once, groups equal
failures, solves one of each group, and shows them on a web page."
  DEPENDS
  "clew (= ${PROJECT_VERSION}), systemd"
  # For a webhook whose receiver has a certificate of a public authority.
  RECOMMENDS
  "ca-certificates")

include(CPack)
