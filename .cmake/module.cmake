# troupe_module(NAME FOLDER SOURCES … [PUBLIC_LINKS …] [PRIVATE_LINKS …])
#
# A static library troupe_NAME, exported as Troupe::NAME, of the sources in FOLDER. Its headers are
# included as "FOLDER/header.hpp". They are reached through a link of their own below the build folder, so a
# header resolves only for targets that link its module.
function(troupe_module name folder)
  cmake_parse_arguments(arg "" "" "SOURCES;PUBLIC_LINKS;PRIVATE_LINKS" ${ARGN})
  set(root ${CMAKE_BINARY_DIR}/include/${name})
  cmake_path(GET folder PARENT_PATH parent)
  file(MAKE_DIRECTORY ${root}/${parent})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${folder} ${root}/${folder} SYMBOLIC)
  add_library(troupe_${name} STATIC ${arg_SOURCES})
  add_library(Troupe::${name} ALIAS troupe_${name})
  set_target_properties(troupe_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(troupe_${name} PUBLIC
    $<BUILD_INTERFACE:${root}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/troupe>)
  target_link_libraries(troupe_${name} PUBLIC ${arg_PUBLIC_LINKS} PRIVATE ${arg_PRIVATE_LINKS} troupe_options)
  install(TARGETS troupe_${name} EXPORT TroupeTargets)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/troupe/${folder}
    FILES_MATCHING PATTERN "*.hpp")
endfunction()

# What all of our own code is compiled with. -ffp-contract=off is part of the numerics contract.
add_library(troupe_options INTERFACE)
target_compile_options(troupe_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off -Wall -Wextra -Wno-missing-field-initializers -Wpedantic -Wconversion -Wshadow -Werror>)
install(TARGETS troupe_options EXPORT TroupeTargets)
if(TROUPE_SANITIZE)
  add_compile_options(-fsanitize=${TROUPE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TROUPE_SANITIZE})
  if(TROUPE_SANITIZE MATCHES thread)
    add_compile_options(-Wno-tsan) # Asio's fences, which come on top of its locks
  endif()
endif()
