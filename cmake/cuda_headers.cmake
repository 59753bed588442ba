# Finds the CUDA headers of the wheels in `build-system.requires`; nothing is linked to them.
execute_process(
  COMMAND ${Python_EXECUTABLE} -c
          "import nvidia, pathlib; print(next(str(h.parent) for p in nvidia.__path__ for h in pathlib.Path(p).glob('*/include/cupti.h') if (h.parent / 'cuda.h').exists()))"
  OUTPUT_VARIABLE cuda_include_dir
  OUTPUT_STRIP_TRAILING_WHITESPACE
  ERROR_QUIET
  RESULT_VARIABLE missing)
if(missing)
  message(FATAL_ERROR "CUDA's headers are missing: `pip install nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cupti`.")
endif()
