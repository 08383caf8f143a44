# find_package(Tasting): the targets that are added after it are built through Tasting.

# In the source tree tasting.cmake lies here; installed, this file is PREFIX/lib/cmake/Tasting/TastingConfig.cmake.
include("${CMAKE_CURRENT_LIST_DIR}/tasting.cmake" OPTIONAL RESULT_VARIABLE _tasting_included)
if(NOT _tasting_included)
  include("${CMAKE_CURRENT_LIST_DIR}/../../../share/tasting/cmake/tasting.cmake")
endif()
unset(_tasting_included)

if(NOT TASTING_C_SHIM OR NOT TASTING_CXX_SHIM)
  set(Tasting_FOUND FALSE)
  set(Tasting_NOT_FOUND_MESSAGE "tasting-cc and tasting-c++ were not found")
endif()
