// Keys of the pages about plans.
import { addKey } from "./keys.js";

const click = (id) => () => document.getElementById(id)?.click();
if (document.getElementById("remove_brokers")) addKey("n", "go to the form of a new plan", () => document.getElementById("remove_brokers").focus());
if (document.getElementById("compare")) addKey("c", "compare the chosen plans", click("compare"));
if (document.getElementById("download")) addKey("j", "download the reassignment JSON", click("download"));
if (document.querySelector("[rel=prev]")) addKey("p", "show what is before", () => document.querySelector("[rel=prev]").click());
if (document.querySelector("[rel=next]")) addKey("n", "show what follows", () => document.querySelector("[rel=next]").click());
