# Lets the compilers, the linkers and the tests of a CMake project run through Tasting. One of:
#
#   cmake --toolchain PREFIX/share/tasting/cmake/tasting.cmake …
#   cmake -DCMAKE_PROJECT_TOP_LEVEL_INCLUDES=PREFIX/share/tasting/cmake/tasting.cmake …   (CMake 3.24 and newer)
#   find_package(Tasting), after project()
#
# CMake goes on calling the compiler by its own name, with `tasting-cc` before it. A launcher such as ccache is kept,
# whoever sets it, and comes after Tasting. Linking takes CMake 3.21 and a Makefile or Ninja generator; with an older
# CMake use -DCMAKE_C_COMPILER=tasting-cc -DCMAKE_CXX_COMPILER=tasting-c++ instead.
#
# `ctest` puts `tasting run` before the commands of all tests, whether they are targets, paths or `sh -c`: see
# ctest.cmake.in. Code generators and the calls that list the cases of a test program are left alone.

cmake_policy(PUSH)
cmake_policy(VERSION 3.21)

set(_tasting_missing "")
foreach(_tasting_pair "C:tasting-cc" "CXX:tasting-c++" "RUN:tasting")
  string(REPLACE ":" ";" _tasting_pair "${_tasting_pair}")
  list(GET _tasting_pair 0 _tasting_role)
  list(GET _tasting_pair 1 _tasting_name)
  # Installed, this file is PREFIX/share/tasting/cmake/tasting.cmake.
  find_program(TASTING_${_tasting_role}_SHIM ${_tasting_name}
    HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../bin"
    DOC "Tasting's ${_tasting_name}"
    NO_CMAKE_FIND_ROOT_PATH)
  # One that has gone since is looked for anew the next time.
  if(NOT TASTING_${_tasting_role}_SHIM OR NOT EXISTS "${TASTING_${_tasting_role}_SHIM}")
    list(APPEND _tasting_missing ${_tasting_name})
    unset(TASTING_${_tasting_role}_SHIM CACHE)
  endif()
endforeach()

get_property(_tasting_known GLOBAL PROPERTY _tasting_known)
get_property(_tasting_probe GLOBAL PROPERTY IN_TRY_COMPILE)
if(_tasting_missing AND NOT _tasting_known AND NOT _tasting_probe)
  list(JOIN _tasting_missing ", " _tasting_missing)
  message(WARNING "${_tasting_missing}: neither beside ${CMAKE_CURRENT_LIST_FILE} nor in PATH; going on without it")
endif()

# Puts a shim first in a list of launchers, once: a toolchain file is read several times.
function(_tasting_put_first _tasting_list shim)
  set(others "${${_tasting_list}}")
  list(REMOVE_ITEM others "${shim}")
  set(${_tasting_list} "${shim}" ${others} PARENT_SCOPE)
endfunction()

foreach(_tasting_language C CXX)
  if(TASTING_${_tasting_language}_SHIM)
    foreach(_tasting_launcher CMAKE_${_tasting_language}_COMPILER_LAUNCHER CMAKE_${_tasting_language}_LINKER_LAUNCHER)
      # CMake itself takes these from the environment as well, but only where nothing is set here.
      if(NOT DEFINED ${_tasting_launcher} AND NOT "$ENV{${_tasting_launcher}}" STREQUAL "")
        set(${_tasting_launcher} "$ENV{${_tasting_launcher}}")
      endif()
      _tasting_put_first(${_tasting_launcher} "${TASTING_${_tasting_language}_SHIM}")
    endforeach()
  endif()
endforeach()

# At the end of the project: what the project has set itself in the meantime, and its tests.
function(_tasting_finish_folder folder)
  if(TASTING_RUN_SHIM)
    # Before all others: those of GoogleTest and its kin add tests.
    get_property(included DIRECTORY "${folder}" PROPERTY TEST_INCLUDE_FILES)
    set_property(DIRECTORY "${folder}" PROPERTY TEST_INCLUDE_FILES "${CMAKE_BINARY_DIR}/CMakeFiles/tasting/ctest.cmake" ${included})
  endif()
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_property(type TARGET "${target}" PROPERTY TYPE)
    if(type MATCHES "^(EXECUTABLE|(STATIC|SHARED|MODULE|OBJECT)_LIBRARY)$")
      _tasting_finish_target("${target}")
    endif()
  endforeach()
  get_property(subfolders DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(subfolder IN LISTS subfolders)
    _tasting_finish_folder("${subfolder}")
  endforeach()
endfunction()

function(_tasting_finish_target target)
  foreach(language C CXX)
    if(TASTING_${language}_SHIM)
      foreach(property ${language}_COMPILER_LAUNCHER ${language}_LINKER_LAUNCHER)
        get_property(launchers TARGET "${target}" PROPERTY ${property})
        _tasting_put_first(launchers "${TASTING_${language}_SHIM}")
        set_property(TARGET "${target}" PROPERTY ${property} "${launchers}")
      endforeach()
    endif()
  endforeach()
endfunction()

function(_tasting_finish)
  _tasting_finish_folder("${CMAKE_SOURCE_DIR}")
endfunction()

if(NOT _tasting_known AND NOT _tasting_probe)
  set_property(GLOBAL PROPERTY _tasting_known TRUE)
  configure_file("${CMAKE_CURRENT_LIST_DIR}/ctest.cmake.in" "${CMAKE_BINARY_DIR}/CMakeFiles/tasting/ctest.cmake" @ONLY)
  cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL _tasting_finish)
endif()

foreach(_tasting_name missing pair role known probe language launcher)
  unset(_tasting_${_tasting_name})
endforeach()
unset(_tasting_name)
cmake_policy(POP)
