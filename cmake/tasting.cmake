# Lets the compilers and linkers of a CMake project run through Tasting. One of:
#
#   cmake --toolchain PREFIX/share/tasting/cmake/tasting.cmake …
#   cmake -DCMAKE_PROJECT_TOP_LEVEL_INCLUDES=PREFIX/share/tasting/cmake/tasting.cmake …   (CMake 3.24 and newer)
#   find_package(Tasting), after project() and before the first target
#
# CMake goes on calling the compiler by its own name, with `tasting-cc` before it. A launcher that is set already,
# such as ccache, is kept and comes after Tasting. Linking takes CMake 3.21 and a Makefile or Ninja generator;
# with an older CMake use -DCMAKE_C_COMPILER=tasting-cc -DCMAKE_CXX_COMPILER=tasting-c++ instead.

foreach(_tasting_pair "C:tasting-cc" "CXX:tasting-c++")
  string(REPLACE ":" ";" _tasting_pair "${_tasting_pair}")
  list(GET _tasting_pair 0 _tasting_language)
  list(GET _tasting_pair 1 _tasting_name)

  # Installed, this file is PREFIX/share/tasting/cmake/tasting.cmake.
  find_program(TASTING_${_tasting_language}_SHIM ${_tasting_name}
    HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../bin"
    DOC "Tasting's shim for ${_tasting_language}"
    NO_CMAKE_FIND_ROOT_PATH)

  set(_tasting_shim "${TASTING_${_tasting_language}_SHIM}")
  if(NOT _tasting_shim)
    message(WARNING "${_tasting_name} is neither beside ${CMAKE_CURRENT_LIST_FILE} nor in PATH: building without Tasting")
  else()
    foreach(_tasting_launcher CMAKE_${_tasting_language}_COMPILER_LAUNCHER CMAKE_${_tasting_language}_LINKER_LAUNCHER)
      # CMake itself takes these from the environment as well, but only where nothing is set here.
      if(NOT DEFINED ${_tasting_launcher} AND NOT "$ENV{${_tasting_launcher}}" STREQUAL "")
        set(${_tasting_launcher} "$ENV{${_tasting_launcher}}")
      endif()
      # A toolchain file is read several times. IN_LIST is an operator only for projects that ask for CMake 3.3 or newer.
      list(FIND ${_tasting_launcher} "${_tasting_shim}" _tasting_place)
      if(_tasting_place EQUAL -1)
        set(${_tasting_launcher} "${_tasting_shim}" ${${_tasting_launcher}})
      endif()
    endforeach()
  endif()
endforeach()

unset(_tasting_pair)
unset(_tasting_language)
unset(_tasting_name)
unset(_tasting_shim)
unset(_tasting_launcher)
unset(_tasting_place)
