# The one helper: kubeopera_library(<module> DEPS <modules> EXTERNAL <targets>), and its sisters for tests and programs.

# Flags of everything of ours.
add_library(kubeopera_flags INTERFACE)
target_compile_options(kubeopera_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror=return-type -Werror=unused-result -fno-omit-frame-pointer)
if(KUBEOPERA_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
elseif(KUBEOPERA_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
endif()
find_program(KUBEOPERA_LLD NAMES ld.lld-19 ld.lld)
if(KUBEOPERA_LLD)
  add_link_options(-fuse-ld=lld)
endif()
find_program(KUBEOPERA_CCACHE ccache)
if(KUBEOPERA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${KUBEOPERA_CCACHE})
endif()

# A module of the SDK: src/<name>/*.cpp, headers under include/kubeopera/<name>.
#   DEPS      modules it may include (must match cmake/layers.txt; the layer test checks it)
#   EXTERNAL  imported targets that its .cpp files use
#   PUBLIC    imported targets that its public headers use
function(kubeopera_library name)
  cmake_parse_arguments(ARG "" "" "DEPS;EXTERNAL;PUBLIC" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  if(NOT sources)
    add_library(kubeopera_${name} INTERFACE)
    add_library(kubeopera::${name} ALIAS kubeopera_${name})
    target_include_directories(kubeopera_${name} INTERFACE ${PROJECT_SOURCE_DIR}/include)
    return()
  endif()
  add_library(kubeopera_${name} ${sources})
  add_library(kubeopera::${name} ALIAS kubeopera_${name})
  set_target_properties(kubeopera_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(kubeopera_${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_features(kubeopera_${name} PUBLIC cxx_std_20)
  list(TRANSFORM ARG_DEPS PREPEND kubeopera::)
  target_link_libraries(kubeopera_${name} PUBLIC ${ARG_DEPS} ${ARG_PUBLIC} PRIVATE $<BUILD_INTERFACE:kubeopera_flags> ${ARG_EXTERNAL})
  install(TARGETS kubeopera_${name} EXPORT kubeopera COMPONENT ${name})
  set_property(GLOBAL APPEND PROPERTY KUBEOPERA_BUILT_MODULES ${name})
endfunction()

# A gtest program of tests/<dir>/*.cpp. LIBS are modules or targets.
function(kubeopera_test name dir)
  cmake_parse_arguments(ARG "" "" "LIBS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${dir}/*.cpp)
  if(NOT sources)
    return()
  endif()
  foreach(lib IN LISTS ARG_LIBS)
    if(NOT TARGET ${lib} AND NOT TARGET kubeopera_${lib})
      return()
    endif()
  endforeach()
  add_executable(${name} ${sources})
  set(libs)
  foreach(lib IN LISTS ARG_LIBS)
    if(TARGET kubeopera_${lib})
      list(APPEND libs kubeopera::${lib})
    else()
      list(APPEND libs ${lib})
    endif()
  endforeach()
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE KUBEOPERA_TESTS_DIR="${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE ${libs} kubeopera_flags GTest::gtest GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name} --gtest_output=json:${PROJECT_BINARY_DIR}/results/${name}.json)
endfunction()

# Installs headers, targets and the package configuration.
function(kubeopera_install)
  include(CMakePackageConfigHelpers)
  get_property(modules GLOBAL PROPERTY KUBEOPERA_BUILT_MODULES)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/kubeopera DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
  install(EXPORT kubeopera NAMESPACE kubeopera:: FILE kubeoperaTargets.cmake
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kubeopera COMPONENT dev)
  set(KUBEOPERA_COMPONENTS ${modules})
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/kubeoperaConfig.cmake.in
    ${PROJECT_BINARY_DIR}/kubeoperaConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kubeopera)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/kubeoperaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/kubeoperaConfig.cmake ${PROJECT_BINARY_DIR}/kubeoperaConfigVersion.cmake
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kubeopera COMPONENT dev)
endfunction()
