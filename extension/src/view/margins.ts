/** Left and right of the plot area of every chart on the time axis, so that times lie in line. */
export const TIME_MARGINS_PX = { left: 112, right: 16 } as const;
