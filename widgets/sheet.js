// @ts-check
/** A table that the kernel publishes anew while it changes, a sweep's: an anywidget (AFM) module without a view. */
import { standing } from "./stand.js";

export default { initialize: standing(null) };
