# The list of what the wheel contains, where PEP 770 has it.
set(sbom ${CMAKE_BINARY_DIR}/gpuviz.cdx.json)
execute_process(
  COMMAND ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/third_party.py sbom ${sbom}
          ${SKBUILD_PROJECT_VERSION_FULL}
  COMMAND_ERROR_IS_FATAL ANY)
install(FILES ${sbom} DESTINATION ${SKBUILD_METADATA_DIR}/sboms)
