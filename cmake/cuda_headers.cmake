# Finds the CUDA headers of the wheels in `build-system.requires`, or else those of the conda
# environment; nothing is linked to them.
execute_process(
  COMMAND ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/cuda_headers.py
  OUTPUT_VARIABLE cuda_include_dir
  OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE missing)
if(missing)
  message(FATAL_ERROR "CUDA's headers are missing: `pip install nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cupti`.")
endif()
